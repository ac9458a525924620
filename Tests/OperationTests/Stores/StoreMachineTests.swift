@testable import Operation
import ReactiveStreams
import Testing

/// Every event of the store's machine in every state of a run: none, scheduled, started, yielded.
@Suite("The machine of a store") struct StoreMachineTests {
  @Test("An awaiter starts a run, and a second one joins it")
  func awaiters() throws {
    let driver = MachineDriver()
    let first = try #require(driver.run(.awaiter))
    let second = try #require(driver.run(.awaiter))
    #expect(first.mustLaunch)
    #expect(!second.mustLaunch)
    #expect(first.core == second.core)
    #expect(driver.machine.leaseCount == 2)
    #expect(driver.machine.state.activeTasks.ids == [first.core.id])
  }

  @Test("A run for an invalidation is refused when another run has fetched meanwhile")
  func lateInvalidation() {
    let driver = MachineDriver()
    _ = driver.subscribe()
    for cause in [OperationRun.Cause.invalidation, .dependency] {
      guard case .refused = driver.admit(.observers, cause: cause) else {
        Issue.record("the run was admitted")
        return
      }
    }
    driver.on { _ = $0.invalidate() }
    guard case .admitted = driver.admit(.observers, cause: .dependency) else {
      Issue.record("the run was refused")
      return
    }
  }

  @Test("A run for a value is refused if a value was stored since, unless that value is stale")
  func lateEnsuring() {
    let driver = MachineDriver()
    driver.machine.write(.success(1), driver.machine.context)
    guard case .refused = driver.admit(.awaiter, seenResults: 0) else {
      Issue.record("the run was admitted")
      return
    }
    guard case .admitted = driver.admit(.awaiter, seenResults: 1) else {
      Issue.record("a run was refused, and no result was stored")
      return
    }
    driver.on { _ = $0.invalidate() }
    guard case .admitted = driver.admit(.awaiter, seenResults: 0) else {
      Issue.record("a run for a stale value was refused")
      return
    }
  }

  @Test("A run of the observers is refused when there are none")
  func noObservers() {
    let driver = MachineDriver()
    guard case .refused = driver.admit(.observers) else {
      Issue.record("the run was admitted")
      return
    }
    #expect(driver.machine.runs.isEmpty)
  }

  @Test("The observers start no second run beside one that is as new as it would be")
  func observersOnce() throws {
    let driver = MachineDriver(deduplication: .never)
    _ = driver.subscribe()
    _ = try #require(driver.run(.observers))
    #expect(driver.run(.observers) == nil)
    _ = driver.machine.invalidate()
    #expect(driver.run(.observers) != nil)
  }

  @Test("A handle holds a run that was not started, and starts none")
  func handle() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.handle))
    #expect(!run.mustLaunch)
    #expect(driver.machine.leaseCount == 0)
    #expect(driver.machine.state.isLoading)
    #expect(driver.on { $0.dropHandle(run.core.id) } == run.core)
    #expect(!driver.machine.state.isLoading)
  }

  @Test("A dropped handle ends no run that was started or that another handle holds")
  func droppedHandle() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.handle))
    _ = driver.run(.handle)
    #expect(driver.on { $0.dropHandle(run.core.id) } == nil)
    _ = driver.machine.start(run.core, OperationTaskConfiguration())
    #expect(driver.on { $0.dropHandle(run.core.id) } == nil)
    #expect(driver.machine.runs.count == 1)
  }

  @Test(
    "The first caller that starts a run launches it with its configuration; the next one joins it")
  func start() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.handle))
    guard
      case .launch(let task) = driver.machine.start(
        run.core, OperationTaskConfiguration(name: "first")),
      case .joined = driver.machine.start(run.core, OperationTaskConfiguration(name: "second"))
    else {
      Issue.record("the run was started in another way")
      return
    }
    #expect(task.configuration.name == "first")
    #expect(driver.machine.leaseCount == 2)
    _ = driver.machine.cancelAll()
    guard case .removed = driver.machine.start(run.core, OperationTaskConfiguration()) else {
      Issue.record("a run that was cancelled was started")
      return
    }
  }

  @Test("A caller that does not join takes no lease on a run that was started")
  func startWithoutJoining() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.handle))
    let configuration = OperationTaskConfiguration()
    guard
      case .launch = driver.machine.start(run.core, configuration, joins: false),
      case .running = driver.machine.start(run.core, configuration, joins: false)
    else {
      Issue.record("the run was started in another way")
      return
    }
    #expect(driver.machine.leaseCount == 1)
  }

  @Test("A run is cancelled when its last awaiter releases its lease")
  func releaseLease() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.awaiter))
    _ = driver.run(.awaiter)
    #expect(driver.on { $0.releaseLease(on: run.core.id) }.core == nil)
    #expect(driver.on { $0.releaseLease(on: run.core.id) }.core == run.core)
    #expect(driver.on { $0.releaseLease(on: run.core.id) }.core == nil)
    #expect(driver.machine.leaseCount == 0)
  }

  @Test("The last subscriber releases the leases of the observers, but no awaiter's")
  func lastSubscriber() throws {
    let driver = MachineDriver()
    let first = driver.subscribe()
    let second = driver.subscribe()
    let run = try #require(driver.run(.observers))
    #expect(driver.machine.leaseCount == 2)
    #expect(driver.on { $0.unsubscribe(first.id) }.cores.isEmpty)
    _ = driver.run(.awaiter)
    #expect(driver.on { $0.unsubscribe(second.id) }.cores.isEmpty)
    #expect(driver.on { $0.releaseLease(on: run.core.id) }.core == run.core)
  }

  @Test("A second removal of one subscriber does nothing")
  func unsubscribeTwice() throws {
    let driver = MachineDriver()
    let first = driver.subscribe()
    _ = driver.run(.observers)
    #expect(driver.on { $0.unsubscribe(first.id) }.cores.count == 1)
    let again = driver.machine.unsubscribe(first.id)
    #expect(again.subscriber == nil)
    #expect(again.cores.isEmpty)
  }

  @Test("A run that was removed changes nothing and notifies no subscriber")
  func late() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.awaiter))
    let (names, _) = driver.subscribe()
    _ = driver.machine.cancelAll()
    driver.settle()
    let before = names.all
    #expect(driver.on { $0.yield(run.core.id, .success(1)) } == nil)
    #expect(!driver.on { $0.end(run.core.id, .success(2)).isCounted })
    #expect(driver.on { $0.cancel(run.core.id) } == nil)
    driver.settle()
    #expect(names.all == before)
    #expect(driver.machine.state.currentValue == nil)
  }

  @Test("A cancellation that is yielded or that a run ends with is no error of the state")
  func cancellation() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.awaiter))
    #expect(driver.on { $0.yield(run.core.id, .failure(CancellationError())) } != nil)
    #expect(driver.machine.state.error == nil)
    _ = driver.machine.end(run.core.id, .failure(CancellationError()))
    #expect(driver.machine.state.error == nil)
    #expect(driver.machine.state.errorUpdateCount == 0)
    #expect(driver.machine.state.status.isIdle)
  }

  @Test("An invalidation starts a run when the store is observed and no run was started")
  func invalidate() throws {
    let driver = MachineDriver()
    #expect(!driver.on { $0.invalidate() })
    let (_, id) = driver.subscribe()
    #expect(driver.on { $0.invalidate() })
    _ = driver.run(.handle)
    #expect(driver.on { $0.invalidate() }, "a run that was not started is no answer")
    let run = try #require(driver.run(.observers))
    #expect(run.mustLaunch)
    #expect(!driver.on { $0.invalidate() })
    #expect(driver.on { $0.end(run.core.id, .success(1)).mustFollow })
    #expect(driver.machine.freshness.isInvalidated)
    _ = driver.machine.unsubscribe(id)
    #expect(!driver.on { $0.invalidate() })
  }

  @Test("A run that began after the last invalidation makes the value fresh")
  func refresh() throws {
    let driver = MachineDriver()
    _ = driver.machine.invalidate()
    let run = try #require(driver.run(.awaiter))
    #expect(!driver.on { $0.end(run.core.id, .success(1)).mustFollow })
    #expect(!driver.machine.freshness.isInvalidated)
  }

  @Test("A failure leaves an invalidated value invalidated")
  func failedRefresh() throws {
    let driver = MachineDriver()
    _ = driver.machine.invalidate()
    let run = try #require(driver.run(.awaiter))
    _ = driver.machine.end(run.core.id, .failure(Failed()))
    #expect(driver.machine.freshness.isInvalidated)
  }

  @Test("A reset ends every run, notifies their handlers, and is notified once")
  func reset() throws {
    let driver = MachineDriver(deduplication: .never)
    let received = Recorder<String>()
    let run = driver.run(.awaiter, handler: Subscriber { received.append($0.name) })
    let (names, _) = driver.subscribe()
    let other = driver.run(.handle)
    driver.settle()
    let count = names.count
    let ended = driver.machine.reset(driver.machine.context).cores.map(\.id)
    #expect(ended == [run, other].compactMap(\.?.core.id))
    driver.settle()
    #expect(names.all.dropFirst(count) == ["state nil", "ended CancellationError()"])
    #expect(received.all.last == "ended CancellationError()")
    #expect(driver.machine.leaseCount == 0)
  }

  @Test("Another thread waits for exclusive access, and reads the state from before it")
  func exclusive() {
    let driver = MachineDriver()
    let owner = ThreadID(rawValue: 1)
    let other = ThreadID(rawValue: 2)
    #expect(driver.on { $0.gate(for: owner) } == nil)
    driver.machine.beginExclusiveAccess(owner)
    driver.machine.beginExclusiveAccess(owner)
    #expect(driver.on { $0.gate(for: owner) } == nil)
    #expect(driver.on { $0.gate(for: other) } != nil)
    driver.machine.write(.success(1), driver.machine.context)
    #expect(driver.machine.visibleState(to: owner).currentValue == 1)
    #expect(driver.machine.visibleState(to: other).currentValue == nil)
    #expect(driver.on { $0.endExclusiveAccess() }.gateCount == 0)
    #expect(driver.on { $0.endExclusiveAccess() }.gateCount == 1)
    #expect(driver.machine.visibleState(to: other).currentValue == 1)
    #expect(driver.on { $0.gate(for: other) } == nil)
  }

  @Test("While an edit is computed, other threads read the earlier state, even if the edit writes")
  func writingEdit() {
    let driver = MachineDriver()
    let (owner, other) = (ThreadID(rawValue: 1), ThreadID(rawValue: 2))
    driver.machine.write(.success(1), driver.machine.context)
    var effects = StoreEffects<MachineDriver.Machine.Event>()
    driver.machine.perform(.edit, on: owner, use: StoreUse(), leaving: &effects) {
      $0.beginEdit(.next()) {
        $0? += 100
      } show: {
        $0.show($1, updates: $2)
      }
    }
    #expect(effects.mustCompute)
    #expect(driver.machine.visibleState(to: other).currentValue == 1)
    driver.machine.perform(.change, on: owner, use: StoreUse(), leaving: &effects) {
      $0.write(.success(5), $0.context)
    }
    #expect(driver.machine.visibleState(to: owner).currentValue == 5)
    #expect(driver.machine.visibleState(to: other).currentValue == 1)
    #expect(driver.machine.visibleState(to: other).valueUpdateCount == 1)
  }

  @Test("An awaiter of the answer to an invalidation waits for the oldest run that answers it")
  func oldestAnswer() throws {
    let driver = MachineDriver(deduplication: .never)
    let old = try #require(driver.run(.awaiter))
    _ = driver.on { $0.invalidate() }
    let generation = driver.machine.freshness.invalidationCount
    let answer = try #require(driver.run(.awaiter))
    let other = try #require(driver.run(.awaiter))
    // The last run moves to its place in the table, which has no order.
    _ = driver.on { $0.end(old.core.id, .success(1)) }
    #expect(driver.machine.taskToAnswer(generation)?.id == answer.core.id)
    _ = driver.on { $0.end(answer.core.id, .success(2)) }
    #expect(driver.machine.taskToAnswer(generation) == nil)
    #expect(driver.machine.runs.ids == [other.core.id])
  }
}

extension StoreMachine.AccessEnd {
  fileprivate var gateCount: Int? {
    switch self {
    case .mustCompute: nil
    case .ended(let access): access?.gates.count ?? 0
    }
  }
}
