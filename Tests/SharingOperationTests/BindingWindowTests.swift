import Observation
import SharingOperation
import Testing

/// What changes while a wrapper is being bound, and what a request changes in a wrapper.
@Suite struct BindingWindowTests {
  private enum Step: CaseIterable { case bindNothing, bindAnother, release }

  private let client = OperationClient.quiet()

  private func number(_ name: String) -> WrittenNumber { WrittenNumber(path: ["written", name]) }

  @Test(
    "A task that an observer starts does not work for the run that binds or releases the wrapper",
    arguments: Step.allCases)
  private func observerInRequest(_ step: Step) async throws {
    let (wrappers, tasks) = (Log<SharedQuery<WrittenNumber.State>>(), Log<Task<Int, any Error>>())
    let (other, isObserved, isJoined, failures) = (number("b"), Door(), Door(), Counter())
    wrappers.append(SharedQuery(number("a"), client: client))
    wrappers.elements[0].withLock { $0 = 1 }
    let query = Query<Int, any Error>(path: ["binding"]) { _ in
      switch step {
      case .bindNothing: wrappers.elements[0].bind(to: nil)
      case .bindAnother: wrappers.elements[0].bind(to: other)
      case .release: wrappers.removeAll()
      }
      isObserved.open()
      await isJoined.passed()
      return 3
    }
    withObservationTracking {
      // The readers of the store are notified by the thread that binds.
      _ = wrappers.elements[0].store
    } onChange: { [client] in
      // It would end with a cycle if it worked for the run.
      let task = Task {
        do { return try await client.fetch(query) } catch {
          failures.increment()
          throw error
        }
      }
      tasks.append(task)
    }
    async let value = client.fetch(query)
    await isObserved.passed()
    let store = client.store(for: query)
    while store.leaseCount < 2, failures.count == 0 { await Task.yield() }
    isJoined.open()
    #expect(try await value == 3)
    #expect(try await tasks.elements[0].value == 3)
  }

  @Test(
    "A reader of a loading flag that was never delivered is notified, also below a pending edit",
    arguments: [false, true])
  func undoneFlag(isEdited: Bool) async {
    let wrapper = SharedQuery(number("a"), client: client)
    let (notifications, second) = (Log<Counter>(), client.store(for: number("b")))
    let isDone = Door()
    let edit = isEdited ? Task { await second.edit(until: isDone) } : nil
    while isEdited, !second.isOptimistic { await Task.yield() }
    withObservationTracking {
      _ = wrapper.store
    } onChange: { [wrapper] in
      let task = second.runTask()
      notifications.append(track { #expect(wrapper.isLoading) })
      second.cancel()
      withExtendedLifetime(task) {}
    }
    wrapper.bind(to: number("b"))
    #expect(!wrapper.isLoading)
    #expect(notifications.elements.map(\.count) == [1])
    isDone.open()
    await edit?.value
  }

  @Test(
    "An earlier value does not come back when a store gets a value and is reset while it is bound")
  func valueWhileBinding() async {
    let wrapper = SharedQuery(number("a"), client: client)
    wrapper.withLock { $0 = 5 }
    let second = client.store(for: number("b"))
    let follower = SharedQuery(dependingOn: wrapper) { [client] (number: Int) in
      let request = WrittenNumber(path: ["of", number])
      client.store(for: request).currentValue = number
      return request
    }
    #expect(follower.wrappedValue == 5)
    var values = wrapper.values.makeAsyncIterator()
    withObservationTracking {
      _ = wrapper.store
    } onChange: { [wrapper] in
      second.currentValue = 7
      #expect(wrapper.wrappedValue == 7)
      second.resetState()
      #expect(wrapper.wrappedValue == nil && !wrapper.isPrevious)
      #expect(follower.wrappedValue == nil)
    }
    wrapper.bind(to: number("b"), keepingPrevious: true)
    #expect(wrapper.wrappedValue == nil && !wrapper.isPrevious)
    #expect(await values.next() == .some(nil))
  }

  @Test("A stream that takes a binding late has no earlier value that the wrapper has left")
  func lateBinding() async {
    let wrapper = SharedQuery(number("a"), client: client)
    wrapper.withLock { $0 = 1 }
    let third = client.store(for: number("c"))
    let binds = Counter()
    // Its closure is called while the wrapper delivers its first binding, before the stream takes it.
    let dependent = SharedQuery(dependingOn: wrapper) { (number: Int?) -> WrittenNumber? in
      if number == 2, binds.increment() == 1 {
        wrapper.bind(to: WrittenNumber(path: ["written", "c"]), keepingPrevious: true)
        third.currentValue = 7
        third.resetState()
      }
      return nil
    }
    var values = wrapper.values.makeAsyncIterator()
    client.store(for: number("b")).currentValue = 2
    wrapper.bind(to: number("b"))
    #expect(wrapper.wrappedValue == nil && !wrapper.isPrevious)
    #expect(await values.next() == .some(nil))
    withExtendedLifetime(dependent) {}
  }

  @Test("A stream keeps the earlier value until it sends the new one, although a reader is ahead")
  func readerAhead() async {
    let wrapper = SharedQuery(number("a"), client: client)
    wrapper.withLock { $0 = 5 }
    let second = client.store(for: number("b"))
    let received = Log<Int?>()
    // It is notified before the stream.
    let writer = second.subscribe { [wrapper] event in
      guard event.state?.error != nil, second.currentValue == nil else { return }
      second.currentValue = 7
      #expect(wrapper.wrappedValue == 7)
    }
    wrapper.bind(to: number("b"), keepingPrevious: true)
    let reader = wrapper.values.source.subscribe { signal in
      if case .element(let value, _) = signal { received.append(value) }
    }
    second.setResult(to: .failure(WrongNumber()))
    #expect(received.elements == [5, 7])
    writer.cancel()
    reader.cancel()
  }
}

extension OperationStore<WrittenNumber.State> {
  fileprivate func edit(until isDone: Door) async {
    await optimistically {
      $0 = 7
    } while: {
      await isDone.passed()
    }
  }
}

private struct WrongNumber: Error {}
