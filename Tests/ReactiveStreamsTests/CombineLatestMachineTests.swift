import Testing

@testable import ReactiveStreams

@Suite("CombineLatestMachine")
struct CombineLatestMachineTests {
  private typealias Machine = CombineLatestMachine<Int, String>

  private enum Step: CaseIterable {
    case first, second, finishFirst, finishSecond
  }

  private let heard = Recorder<String>()

  private func machine() -> Machine {
    var machine = Machine()
    _ = machine.deliveries.subscribe(
      Subscriber { [heard] signal in
        heard.record(signal.element.map { "\($0.0)\($0.1)" } ?? "end")
      })
    return machine
  }

  private func drain(_ machine: inout Machine) {
    var delivery = machine.deliveries.beginDraining()
    while let current = delivery {
      current.perform()
      delivery = machine.deliveries.takeNext()
    }
  }

  @Test("One side alone tells nothing; with the other comes the pair of the newest")
  func pairs() {
    var machine = machine()
    _ = machine.receive(first: .element(1))
    _ = machine.receive(first: .element(2))
    #expect(machine.deliveries.pendingCount == 0)
    _ = machine.receive(second: .element("a"))
    _ = machine.receive(second: .element("b"))
    _ = machine.receive(first: .element(3))
    drain(&machine)
    #expect(heard.elements == ["2a", "2b", "3b"])
  }

  @Test("The element that gives way is given back, so that it is released without the lock")
  func displaced() {
    var machine = machine()
    #expect(machine.receive(first: .element(1)) == nil)
    #expect(machine.receive(first: .element(2)) == 1)
    #expect(machine.receive(second: .element("a")) == nil)
    #expect(machine.receive(second: .element("b")) == "a")
    #expect(machine.receive(first: .finished) == nil)
    #expect(machine.receive(second: .finished) == nil)
  }

  @Test("A side that ended keeps its last element for the pairs of the other")
  func oneEnded() {
    var machine = machine()
    _ = machine.receive(first: .element(1))
    _ = machine.receive(first: .finished)
    _ = machine.receive(second: .element("a"))
    _ = machine.receive(second: .finished)
    drain(&machine)
    #expect(heard.elements == ["1a", "end"])
  }

  @Test("It ends once, when both sides have ended or one ended with nothing", arguments: [7])
  func everySequence(length: Int) {
    var sequences = [[Step]()]
    for _ in 0..<length {
      sequences = sequences.flatMap { steps in Step.allCases.map { steps + [$0] } }
    }
    // A source tells nothing after its end.
    sequences.removeAll { steps in
      saysMore([.first, .finishFirst], in: steps) || saysMore([.second, .finishSecond], in: steps)
    }
    #expect(sequences.count == 508)
    for steps in sequences {
      #expect(lines(after: steps) == model(of: steps), "\(steps)")
    }
  }

  private func saysMore(_ side: [Step], in steps: [Step]) -> Bool {
    let told = steps.filter(side.contains)
    return told.dropLast().contains(side[1])
  }

  private func lines(after steps: [Step]) -> [String] {
    let test = Self()
    var machine = test.machine()
    for (index, step) in steps.enumerated() {
      switch step {
      case .first: _ = machine.receive(first: .element(index))
      case .second: _ = machine.receive(second: .element("\(index)"))
      case .finishFirst: _ = machine.receive(first: .finished)
      case .finishSecond: _ = machine.receive(second: .finished)
      }
    }
    test.drain(&machine)
    return test.heard.elements
  }

  private func model(of steps: [Step]) -> [String] {
    var lines: [String] = []
    for (index, step) in steps.enumerated() where lines.last != "end" {
      let past = steps[...index]
      let first = past.lastIndex(of: .first)
      let second = past.lastIndex(of: .second)
      switch step {
      case .first, .second:
        if let first, let second { lines.append("\(first)\(second)") }
      case .finishFirst:
        if first == nil || past.contains(.finishSecond) { lines.append("end") }
      case .finishSecond:
        if second == nil || past.contains(.finishFirst) { lines.append("end") }
      }
    }
    return lines
  }
}
