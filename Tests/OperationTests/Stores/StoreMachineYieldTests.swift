@testable import Operation
import ReactiveStreams
import Testing

/// Yields, leases and invalidations of runs that are cancelled or fail.
@Suite("The machine of a store: yields, leases and invalidations") struct StoreMachineYieldTests {
  @Test("The yields of a cancelled run are undone, whichever other runs begin and end")
  func restoration() throws {
    let driver = MachineDriver(deduplication: .never)
    driver.machine.write(.success(1), driver.machine.context)
    let run = try #require(driver.run(.awaiter))
    _ = driver.machine.yield(run.core.id, .success(2))
    let other = try #require(driver.run(.awaiter))
    _ = driver.machine.yield(run.core.id, .failure(Failed()))
    _ = driver.machine.releaseLease(on: other.core.id)
    _ = driver.machine.releaseLease(on: run.core.id)
    #expect(driver.machine.state.currentValue == 1)
    #expect(driver.machine.state.error == nil)
    #expect(driver.machine.state.valueUpdateCount == 1)
    #expect(!driver.machine.state.isLoading)
  }

  @Test(
    "Each of several runs undoes its own yields, in whatever order they are cancelled",
    arguments: [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
  func restorationOfSeveral(order: [Int]) throws {
    let driver = MachineDriver(deduplication: .never)
    driver.machine.write(.success(-1), driver.machine.context)
    let runs = try (0..<3).map { _ in try #require(driver.run(.awaiter)) }
    // The runs and the values that they have yielded, the last one last.
    var yields = [(0, 10), (1, 11), (0, 20), (2, 12), (1, 21)]
    for (run, value) in yields { _ = driver.machine.yield(runs[run].core.id, .success(value)) }
    for run in order {
      _ = driver.machine.releaseLease(on: runs[run].core.id)
      yields.removeAll { $0.0 == run }
      #expect(driver.machine.state.currentValue == yields.last?.1 ?? -1)
      #expect(driver.machine.committed.yields.count == Set(yields.map(\.0)).count)
    }
    #expect(!driver.machine.state.isLoading)
  }

  @Test("A yield is no result: a caller that has seen no result since may still join the run")
  func yieldIsNoLanding() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.awaiter))
    _ = driver.subscribe()
    let seen = driver.machine.committed.resultCount
    _ = driver.machine.yield(run.core.id, .success(2))
    guard case .admitted(let joined) = driver.admit(.observers, seenResults: seen) else {
      return #expect(Bool(false), "the run was refused")
    }
    #expect(joined.core == run.core)
    _ = driver.machine.end(run.core.id, .success(3))
    guard case .refused = driver.admit(.observers, seenResults: seen) else {
      return #expect(Bool(false), "a run was admitted after a result")
    }
  }

  @Test("One run follows an invalidation, even if it fails before another one is requested")
  func oneFollows() throws {
    let driver = MachineDriver()
    _ = driver.subscribe()
    driver.machine.write(.success(1), driver.machine.context)
    #expect(driver.on { $0.invalidate() })
    guard case .admitted(let answer) = driver.admit(.observers, cause: .invalidation) else {
      return #expect(Bool(false), "the run was refused")
    }
    _ = driver.machine.end(answer.core.id, .failure(Failed()))
    guard case .refused = driver.admit(.observers, cause: .invalidation) else {
      return #expect(Bool(false), "a second run follows")
    }
    driver.machine.invalidate()
    guard case .admitted = driver.admit(.observers, cause: .invalidation) else {
      return #expect(Bool(false), "the next invalidation needs another run")
    }
  }

  @Test("An invalidation whose run the observers have cancelled needs a run for the next observer")
  func givenUpAnswer() throws {
    let driver = MachineDriver()
    let (_, first) = driver.subscribe()
    #expect(driver.on { $0.invalidate() })
    guard case .admitted = driver.admit(.observers, cause: .invalidation) else {
      return #expect(Bool(false), "the run was refused")
    }
    #expect(driver.on { $0.unsubscribe(first).cores.count } == 1)
    _ = driver.subscribe()
    guard case .admitted = driver.admit(.observers, cause: .invalidation) else {
      return #expect(Bool(false), "no run answers the invalidation")
    }
  }

  @Test("The lease of cancelled observers does not return with the next observer")
  func leaseOfTheGone() throws {
    let driver = MachineDriver()
    let (_, first) = driver.subscribe()
    let run = try #require(driver.run(.observers))
    _ = driver.run(.awaiter)
    _ = driver.machine.unsubscribe(first)
    _ = driver.subscribe()
    #expect(driver.machine.leaseCount == 1)
    #expect(driver.on { $0.releaseLease(on: run.core.id).core } == run.core)
  }

  @Test("A task that began after a yield is still in the state when the yield is undone")
  func restorationKeepsTasks() throws {
    let driver = MachineDriver(deduplication: .never)
    let run = try #require(driver.run(.awaiter))
    _ = driver.machine.yield(run.core.id, .success(2))
    let other = try #require(driver.run(.awaiter))
    _ = driver.machine.releaseLease(on: run.core.id)
    #expect(driver.machine.state.currentValue == nil)
    #expect(driver.machine.state.activeTasks.ids == [other.core.id])
  }

  @Test("A value that is written after a yield is kept when the run is cancelled")
  func restorationAfterWrite() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.awaiter))
    _ = driver.machine.yield(run.core.id, .success(2))
    driver.machine.write(.success(3), driver.machine.context)
    _ = driver.machine.yield(run.core.id, .success(4))
    _ = driver.machine.cancelAll()
    #expect(driver.machine.state.currentValue == 3)
  }
}
