import Testing

@testable import ReactiveStreams

/// A machine that numbers its events.
private struct NumberMachine: DeliveryMachine {
  var deliveries = DeliveryQueue<Int>()
  private(set) var number = 0

  mutating func advance() -> Int {
    number += 1
    deliveries.append(number)
    return number
  }

  mutating func subscribe(_ subscriber: Subscriber<Int>) -> UInt64 {
    deliveries.subscribe(subscriber, initially: number)
  }
}

@Suite("DeliveryShell")
struct DeliveryShellTests {
  private let shell = DeliveryShell(NumberMachine())
  private let received = Recorder<Int>()

  private func subscribe() -> OperationSubscription {
    shell.subscribe { [received] in received.record($0) }
  }

  @Test("A commit returns the output of its transition after the delivery")
  func commit() {
    let subscription = subscribe()
    #expect(shell.commit { $0.advance() } == 1)
    #expect(received.elements == [1])
    subscription.cancel()
  }

  @Test("Access without a commit delivers nothing; the next commit delivers in order")
  func withLock() {
    let subscription = subscribe()
    #expect(shell.withLock { $0.advance() } == 1)
    #expect(received.elements == [])
    shell.commit { $0.advance() }
    #expect(received.elements == [1, 2])
    subscription.cancel()
  }

  @Test("Subscribers receive concurrent commits in their order, each once", arguments: 0..<100)
  func order(round: Int) {
    let shell = DeliveryShell(NumberMachine())
    let recorders = (0..<3).map { _ in Recorder<Int>() }
    let subscriptions = recorders.map { recorder in shell.subscribe { recorder.record($0) } }
    let ended = onThreads(8) { _ in
      for _ in 0..<50 { shell.commit { $0.advance() } }
    }
    #expect(ended)
    for recorder in recorders { #expect(recorder.elements == Array(1...400)) }
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A handler may commit, and the event is delivered after the present one")
  func commitInHandler() {
    let second = Recorder<Int>()
    let subscriptions = [
      shell.subscribe { [shell, received] number in
        received.record(number)
        if number < 3 { shell.commit { $0.advance() } }
      },
      shell.subscribe { [received] number in
        second.record(number)
        #expect(received.elements == Array(1...number))
      },
    ]
    shell.commit { $0.advance() }
    #expect(received.elements == [1, 2, 3])
    #expect(second.elements == [1, 2, 3])
    for subscription in subscriptions { subscription.cancel() }
  }

  @Test("A transition that subscribes can deliver an initial event, before subscribe returns")
  func initialEvent() {
    shell.commit { $0.advance() }
    let first = subscribe()
    #expect(received.elements == [])
    let second = shell.subscribe { [received] in
      received.record($0 * 10)
    } by: {
      $0.subscribe($1)
    }
    #expect(received.elements == [10])
    shell.commit { $0.advance() }
    #expect(received.elements == [10, 2, 20])
    first.cancel()
    second.cancel()
  }

  @Test("A cancelled subscriber receives nothing more and is not counted")
  func cancel() {
    let subscription = subscribe()
    #expect(shell.subscriberCount == 1)
    subscription.cancel()
    #expect(shell.subscriberCount == 0)
    shell.commit { $0.advance() }
    #expect(received.elements == [])
  }

  @Test("The handler is released when the subscription is cancelled, with no lock held")
  func release() {
    let count = Box(-1)
    let subscription: OperationSubscription
    do {
      let captured = DeinitAction { [shell] in count.exchange(shell.subscriberCount) }
      subscription = shell.subscribe { _ in _ = captured }
    }
    #expect(count.value == -1)
    let done = onThread { subscription.cancel() }
    #expect(done.wait())
    #expect(count.value == 0)
  }

  @Test("A cancellation inside the handler's own call releases the handler after the call")
  func cancelInHandler() {
    let live = LiveCount()
    let box = Box<OperationSubscription?>(nil)
    do {
      let captured = Counted(in: live)
      box.exchange(
        shell.subscribe { [received] number in
          received.record(number)
          box.cancel()
          #expect(captured.number == 0)
        })
    }
    shell.commit { $0.advance() }
    shell.commit { $0.advance() }
    #expect(received.elements == [1])
    #expect(live.now == 0)
  }

  @Test("A subscription keeps the shell alive, and releases it when it is cancelled")
  func lifetime() {
    var shell = Optional(DeliveryShell(NumberMachine()))
    weak let weakShell = shell
    let subscription = shell?.subscribe { _ in }
    shell = nil
    #expect(weakShell != nil)
    subscription?.cancel()
    #expect(weakShell == nil)
  }
}
