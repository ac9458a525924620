@testable import Operation
import ReactiveStreams
import Testing

/// Every event of the store's machine in every state of a run: none, scheduled, started, yielded.
@Suite("The machine of a store") struct StoreMachineTests {
  @Test("A wish of an awaiter starts a run, and a second one joins it")
  func awaiters() throws {
    let driver = MachineDriver()
    let first = try #require(driver.run(.awaiter))
    let second = try #require(driver.run(.awaiter))
    #expect(first.isStarted)
    #expect(!second.isStarted)
    #expect(first.core == second.core)
    #expect(driver.machine.leaseCount == 2)
    #expect(driver.machine.state.activeTasks.ids == [first.core.id])
  }

  @Test("A run because of an invalidation is refused when somebody has fetched meanwhile")
  func lateInvalidation() {
    let driver = MachineDriver()
    _ = driver.subscribe()
    for cause in [OperationRun.Cause.invalidation, .dependency] {
      guard case .refused = driver.grant(.observers, cause: cause) else {
        Issue.record("the wish was granted")
        return
      }
    }
    driver.on { _ = $0.invalidate() }
    guard case .granted = driver.grant(.observers, cause: .dependency) else {
      Issue.record("the wish was refused")
      return
    }
  }

  @Test("A wish for a value is refused when one has come since, unless that is out of date")
  func lateEnsuring() {
    let driver = MachineDriver()
    driver.machine.write(.success(1), driver.machine.context)
    guard case .refused = driver.grant(.awaiter, seenUpdates: 0) else {
      Issue.record("the wish was granted")
      return
    }
    guard case .granted = driver.grant(.awaiter, seenUpdates: 1) else {
      Issue.record("a wish that nothing came for was refused")
      return
    }
    driver.on { _ = $0.invalidate() }
    guard case .granted = driver.grant(.awaiter, seenUpdates: 0) else {
      Issue.record("a wish for what is out of date was refused")
      return
    }
  }

  @Test("A wish of the observers is refused when nobody observes")
  func noObservers() {
    let driver = MachineDriver()
    guard case .refused = driver.grant(.observers) else {
      Issue.record("the wish was granted")
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

  @Test("A handle holds a run that nobody has started, and starts none")
  func handle() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.handle))
    #expect(!run.isStarted)
    #expect(driver.machine.leaseCount == 0)
    #expect(driver.machine.state.isLoading)
    #expect(driver.on { $0.dropHandle(run.core.id) } == run.core)
    #expect(!driver.machine.state.isLoading)
  }

  @Test("A dropped handle leaves a run alone that somebody has started or another handle holds")
  func droppedHandle() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.handle))
    _ = driver.run(.handle)
    #expect(driver.on { $0.dropHandle(run.core.id) } == nil)
    _ = driver.machine.enter(run.core, OperationTaskConfiguration())
    #expect(driver.on { $0.dropHandle(run.core.id) } == nil)
    #expect(driver.machine.runs.count == 1)
  }

  @Test("Whoever enters first launches the run, with his configuration; the next one joins it")
  func enter() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.handle))
    guard
      case .launch(let task) = driver.machine.enter(
        run.core, OperationTaskConfiguration(name: "first")),
      case .joined = driver.machine.enter(run.core, OperationTaskConfiguration(name: "second"))
    else {
      Issue.record("entered otherwise")
      return
    }
    #expect(task.configuration.name == "first")
    #expect(driver.machine.leaseCount == 2)
    _ = driver.machine.cancelAll()
    guard case .gone = driver.machine.enter(run.core, OperationTaskConfiguration()) else {
      Issue.record("a run that was cancelled was entered")
      return
    }
  }

  @Test("Whoever enters only to start a run takes no lease on one that was started")
  func enterOnlyToStart() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.handle))
    let configuration = OperationTaskConfiguration()
    guard
      case .launch = driver.machine.enter(run.core, configuration, onlyToStart: true),
      case .underWay = driver.machine.enter(run.core, configuration, onlyToStart: true)
    else {
      Issue.record("entered otherwise")
      return
    }
    #expect(driver.machine.leaseCount == 1)
  }

  @Test("A started run is joined without a wish, and with one lease, unless the store is someone's")
  func joinStarted() throws {
    let driver = MachineDriver()
    let context = OperationContext()
    #expect(driver.on { $0.joinStarted(in: context, input: nil)?.core } == nil)
    let run = try #require(driver.run(.handle))
    #expect(driver.on { $0.joinStarted(in: context, input: nil)?.core } == nil, "scheduled only")
    _ = driver.machine.enter(run.core, OperationTaskConfiguration())
    #expect(driver.on { $0.joinStarted(in: context, input: nil)?.core } == run.core)
    #expect(driver.machine.leaseCount == 2)
    let other = ThreadID(rawValue: 1)
    _ = driver.machine.perform({ $0.beginExclusiveAccess(other) }, other, StoreUse())
    #expect(driver.on { $0.joinStarted(in: context, input: nil)?.core } == nil)
    #expect(driver.machine.leaseCount == 2)
  }

  @Test("Without a wish a run begins as one with a wish does, and is joined")
  func enterWithoutWish() throws {
    let (driver, wishing) = (MachineDriver(), MachineDriver())
    let (names, expected) = (driver.subscribe().names, wishing.subscribe().names)
    let first = try #require(driver.enter())
    _ = try #require(wishing.run(.awaiter))
    driver.settle()
    wishing.settle()
    #expect(first.isStarted)
    #expect(names.all == expected.all)
    let task = try #require(driver.machine.state.activeTasks.first)
    #expect(task.core == first.core && task.context.runNode === first.core.node)
    let second = try #require(driver.enter())
    #expect(second.core == first.core && !second.isStarted)
    #expect(driver.machine.leaseCount == 2)
    #expect(driver.on { $0.leave(first.core.id) }.core == nil)
    #expect(driver.on { $0.leave(first.core.id) }.core == first.core)
  }

  @Test("It takes a wish beside another run, in a line, and in a store that is someone's")
  func enterWithMoreToSee() throws {
    let driver = MachineDriver()
    _ = try #require(driver.enter())
    var other = OperationContext()
    other.operationClock = ManualClock()
    #expect(driver.enter(in: other) == nil)
    let inLine = MachineDriver()
    inLine.machine.context.settings.values.serialScope = SerialScope("line")
    #expect(inLine.enter() == nil)
    let owned = MachineDriver()
    let owner = ThreadID(rawValue: 1)
    _ = owned.machine.perform({ $0.beginExclusiveAccess(owner) }, owner, StoreUse())
    #expect(owned.enter() == nil)
    #expect(inLine.machine.leaseCount == 0 && owned.machine.leaseCount == 0)
  }

  @Test("The run ends for everybody when the last awaiter leaves")
  func leave() throws {
    let driver = MachineDriver()
    let run = try #require(driver.run(.awaiter))
    _ = driver.run(.awaiter)
    #expect(driver.on { $0.leave(run.core.id) }.core == nil)
    #expect(driver.on { $0.leave(run.core.id) }.core == run.core)
    #expect(driver.on { $0.leave(run.core.id) }.core == nil)
    #expect(driver.machine.leaseCount == 0)
  }

  @Test("The last subscriber takes the leases of the observers with him, but no awaiter's")
  func lastSubscriber() throws {
    let driver = MachineDriver()
    let first = driver.subscribe()
    let second = driver.subscribe()
    let run = try #require(driver.run(.observers))
    #expect(driver.machine.leaseCount == 2)
    #expect(driver.on { $0.unsubscribe(first.id) }.cores.isEmpty)
    _ = driver.run(.awaiter)
    #expect(driver.on { $0.unsubscribe(second.id) }.cores.isEmpty)
    #expect(driver.on { $0.leave(run.core.id) }.core == run.core)
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

  @Test("A run that has left the table changes nothing and tells nothing")
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

  @Test("An invalidation starts a run when somebody observes and no run has begun")
  func invalidate() throws {
    let driver = MachineDriver()
    #expect(!driver.on { $0.invalidate() })
    let (_, id) = driver.subscribe()
    #expect(driver.on { $0.invalidate() })
    _ = driver.run(.handle)
    #expect(driver.on { $0.invalidate() }, "a run that nobody has started is no answer")
    let run = try #require(driver.run(.observers))
    #expect(run.isStarted)
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

  @Test("A reset ends every run, tells their handlers, and is told once")
  func reset() throws {
    let driver = MachineDriver(deduplication: .never)
    let heard = Recorder<String>()
    let run = driver.run(.awaiter, handler: Subscriber { heard.append($0.name) })
    let (names, _) = driver.subscribe()
    let other = driver.run(.handle)
    driver.settle()
    let count = names.count
    let ended = driver.machine.reset(driver.machine.context).cores.map(\.id)
    #expect(ended == [run, other].compactMap(\.?.core.id))
    driver.settle()
    #expect(names.all.dropFirst(count) == ["state nil", "ended CancellationError()"])
    #expect(heard.all.last == "ended CancellationError()")
    #expect(driver.machine.leaseCount == 0)
  }

  @Test("Another thread waits for exclusive access, and sees what was there before it")
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
    #expect(driver.on { $0.endExclusiveAccess() }.gates?.isEmpty == true)
    #expect(driver.on { $0.endExclusiveAccess() }.gates?.count == 1)
    #expect(driver.machine.visibleState(to: other).currentValue == 1)
    #expect(driver.on { $0.gate(for: other) } == nil)
  }

  @Test("While an edit is computed, others see what was there, also when the edit itself writes")
  func writingEdit() {
    let driver = MachineDriver()
    let (owner, other) = (ThreadID(rawValue: 1), ThreadID(rawValue: 2))
    driver.machine.write(.success(1), driver.machine.context)
    let (_, _, aftermath) = driver.machine.perform(
      {
        $0.beginEdit(.next()) {
          $0? += 100
        } show: {
          $0.show($1, updates: $2)
        }
      }, owner, StoreUse(), isEdit: true)
    #expect(aftermath.mustRender)
    #expect(driver.machine.visibleState(to: other).currentValue == 1)
    _ = driver.machine.perform({ $0.write(.success(5), $0.context) }, owner, StoreUse())
    #expect(driver.machine.visibleState(to: owner).currentValue == 5)
    #expect(driver.machine.visibleState(to: other).currentValue == 1)
    #expect(driver.machine.visibleState(to: other).valueUpdateCount == 1)
  }

  @Test("What waits for the answer to an invalidation waits for the oldest run that is one")
  func oldestAnswer() throws {
    let driver = MachineDriver(deduplication: .never)
    let old = try #require(driver.run(.awaiter))
    _ = driver.on { $0.invalidate() }
    let generation = driver.machine.freshness.generation
    let answer = try #require(driver.run(.awaiter))
    let other = try #require(driver.run(.awaiter))
    // The last one takes its place in the table, which has no order.
    _ = driver.on { $0.end(old.core.id, .success(1)) }
    #expect(driver.machine.taskToAnswer(generation)?.id == answer.core.id)
    _ = driver.on { $0.end(answer.core.id, .success(2)) }
    #expect(driver.machine.taskToAnswer(generation) == nil)
    #expect(driver.machine.runs.ids == [other.core.id])
  }
}

extension StoreMachine.End {
  fileprivate var gates: [Gate]? {
    if case .open(let access, _) = self { access.value?.gates ?? [] } else { nil }
  }
}
