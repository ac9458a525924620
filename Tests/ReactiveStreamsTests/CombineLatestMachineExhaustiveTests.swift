import TestSupport
import Testing

@testable import ReactiveStreams

/// Every element delivers an array of the newest elements, once all sources have one. The end is
/// delivered once, when all have ended or one has ended without an element. What a source sends after its
/// end is dropped.
@Suite("CombineLatestMachine, every sequence")
struct CombineLatestMachineExhaustiveTests {
  private enum Step: CaseIterable {
    case first, second, third, finishFirst, finishSecond, finishThird, deliver
  }

  private struct Walk {
    private let count: Int
    private var machine: CombineLatestMachine<Int>
    private let received = Tape<String>()
    private var newest: [Int?]
    private var isOpen: [Bool]
    private var hasEnded = false
    private var pending: [String] = []
    private var next = 0

    init(count: Int) {
      self.count = count
      machine = CombineLatestMachine(count: count)
      newest = Array(repeating: nil, count: count)
      isOpen = Array(repeating: true, count: count)
      _ = machine.deliveries.subscribe(
        Subscriber { [received] signal in
          received.note(signal.element.map { "\($0)" } ?? "end")
        })
    }

    mutating func take(_ step: Step) throws -> Bool {
      next += 1
      switch step {
      case .first, .second, .third:
        let index = [.first, .second, .third].firstIndex(of: step) ?? 0
        guard try receive(index, isEnd: false) else { return false }
      case .finishFirst, .finishSecond, .finishThird:
        let index = [.finishFirst, .finishSecond, .finishThird].firstIndex(of: step) ?? 0
        guard try receive(index, isEnd: true) else { return false }
      case .deliver:
        let delivered = deliver(&machine, to: received)
        try mustHold(delivered == pending, "\(pending) is delivered, and not \(delivered)")
        pending = []
      }
      try mustHold(received.take().isEmpty, "events are received in a delivery only")
      return true
    }

    private mutating func receive(_ index: Int, isEnd: Bool) throws -> Bool {
      guard isOpen.indices.contains(index) else { return false }
      let earlier = machine.receive(isEnd ? .finished : .element(next), from: index)
      let replaced = isEnd || hasEnded || !isOpen[index] ? nil : newest[index]
      try mustHold(earlier == replaced, "only a replaced element is returned")
      if !isOpen[index] {
        return true
      } else if isEnd {
        isOpen[index] = false
        expect(newest[index] == nil || !isOpen.contains(true) ? "end" : nil)
      } else {
        newest[index] = next
        let all = newest.compactMap(\.self)
        expect(all.count == count ? "\(all)" : nil)
      }
      return true
    }

    private mutating func expect(_ text: String?) {
      guard let text, !hasEnded else { return }
      hasEnded = text == "end"
      pending.append(text)
    }
  }

  @Test("It delivers the newest elements of all sources, and the end once")
  func everySequence() {
    exhaust("CombineLatestMachine", events: Step.allCases, length: 7, from: Walk(count: 3)) {
      walk, step in try walk.take(step)
    }
    let steps: [Step] = [.first, .second, .finishFirst, .finishSecond, .deliver]
    exhaust("CombineLatestMachine of two", events: steps, length: 9, from: Walk(count: 2)) {
      walk, step in try walk.take(step)
    }
  }
}
