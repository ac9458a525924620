import Dispatch
import Foundation
import SharingOperation
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct DependentEditTests {
  @Test("What reads below a pending edit in exclusive access is notified at its end")
  func accessDuringEdit() async {
    let client = OperationClient.quiet()
    let number = SharedQuery(WrittenNumber(path: ["number"]), client: client)
    let store = client.store(for: WrittenNumber(path: ["number"]))
    store.currentValue = 1
    await store.optimistically {
      $0 = 2
    } while: {
      // The owner reads the value without the edit, and writes nothing.
      let (value, dependent) = store.withExclusiveAccess {
        (
          track { #expect(number.wrappedValue == 1) },
          SharedQuery(dependingOn: number) { (number: Int) in WrittenNumber(path: ["of", number]) }
        )
      }
      #expect(number.wrappedValue == 2)
      #expect(value.count == 1)
      let bound = client.store(for: WrittenNumber(path: ["of", 2]))
      #expect(bound.subscriberCount == 1)
      let change = track { #expect(dependent.wrappedValue == nil) }
      bound.currentValue = 7
      #expect(change.count == 1)
    }
  }

  @Test("A dependent wrapper is bound for an edit that follows one that has failed")
  func editAfterFailedEdit() async throws {
    let client = OperationClient.quiet()
    let name = SharedQuery(Query<Opaque, any Error>.opaque(1), client: client)
    let nameStore = try #require(name.store)
    nameStore.currentValue = Opaque(number: 0)
    let isBlocking = Atomic(false)
    let blocked = Door()
    let release = DispatchSemaphore(value: 0)
    // A subscriber that takes long, while another thread delivers.
    let blocker = nameStore.subscribe { _ in
      if isBlocking.exchange(false, ordering: .acquiringAndReleasing) {
        blocked.open()
        release.wait()
      }
    }
    let team = SharedQuery(dependingOn: name) { (value: Opaque) in
      TeamQuery(name: "\(value.number)")
    }
    func path() -> OperationPath? { team.store?.path }
    func expected(_ number: Int) -> OperationPath { TeamQuery(name: "\(number)").path }
    #expect(path() == expected(0))
    isBlocking.store(true, ordering: .releasing)
    let delivered = Door()
    Thread.detachNewThread {
      nameStore.currentValue = Opaque(number: 1)
      delivered.open()
    }
    await blocked.passed()
    #expect(path() == expected(1))
    let door = Door()
    let failing = Task {
      try await nameStore.optimistically({ $0 = Opaque(number: 2) }) {
        () async throws(Refusal) -> Void in
        await door.passed()
        throw Refusal(reason: "no")
      }
    }
    while nameStore.currentValue?.number != 2 { await Task.yield() }
    #expect(path() == expected(2))
    door.open()
    _ = await failing.result
    await nameStore.optimistically({ $0 = Opaque(number: 3) }) {}
    #expect(nameStore.currentValue?.number == 3)
    #expect(path() == expected(3))
    release.signal()
    await delivered.passed()
    #expect(path() == expected(3))
    blocker.cancel()
  }

  @Test("A reader inside an edit is notified after it, also if the displayed value stays the same")
  func readInside() async {
    let client = OperationClient.quiet()
    let number = SharedQuery(WrittenNumber(path: ["number"]), client: client)
    let store = client.store(for: WrittenNumber(path: ["number"]))
    store.currentValue = 1
    let readers = Mutex<[Counter]>([])
    await store.optimistically {
      let reader = track { #expect(number.wrappedValue != 9) }
      readers.withLock { $0.append(reader) }
      $0 = 9
    } while: {
      store.currentValue = 2
      #expect(number.wrappedValue == 9)
    }
    #expect(readers.withLock { $0.map(\.count) }.allSatisfy { $0 == 1 })
    #expect(readers.withLock { $0.count } >= 2)
  }

  @Test("A failed edit is not displayed after a binding to the same store with other rules")
  func failedEdit() async throws {
    let client = OperationClient.quiet(clock: ManualClock())
    let query = Query<Int, any Error>(path: ["n"]) { _ in 1 }
    let wrapper = SharedQuery(query, client: client)
    struct Failed: Error {}
    try? await wrapper.optimistically({ $0 = 7 }) {
      #expect(wrapper.wrappedValue == 7)
      wrapper.bind(to: query.neverStale(), keepingPrevious: true)
      throw Failed()
    }
    #expect(wrapper.wrappedValue == nil)
    #expect(!wrapper.isPrevious)
  }
}
