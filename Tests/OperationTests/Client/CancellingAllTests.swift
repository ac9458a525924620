import Dispatch
import Operation
import Testing

/// Runs of several stores that are cancelled together.
@Suite("Runs that are cancelled together", .timeLimit(.minutes(5))) struct CancellingAllTests {
  private let client = OperationClient(defaults: .testing)

  enum Way: CaseIterable {
    case cancel, reset, shutdown
  }

  @Test(
    "A run that waits for another one is not called when all are cancelled", arguments: Way.allCases
  )
  func scheduled(way: Way) async {
    let (begun, late) = (EventLog<Void>(), Counter())
    let calls = (0..<12).map { number in
      // Each of three runs waits for the one before it. The stores of a group are cancelled one after the other,
      // and the groups in any order.
      let tasks = (0..<3).map { position in
        let group = (position * (1 + number % 2) + number) % 3
        return client.store(
          for: Query<Int, any Error>(path: [group, number]) { _ in
            if position > 0 { return late.increment() }
            begun.append(())
            await untilCancelled()
            return number
          }
        ).runTask()
      }
      for (task, next) in zip(tasks, tasks.dropFirst()) { next.schedule(after: task) }
      return Task { try await tasks[2].runIfNeeded() }
    }
    await begun.wait(for: calls.count)
    let (executor, isDone) = (HandExecutor(), Monitor(false))
    Task(executorPreference: executor) { [client] in
      switch way {
      case .cancel: client.cancel(matching: [])
      case .reset: client.reset(matching: [])
      case .shutdown: _ = await client.shutdown(within: .zero)
      }
      isDone.update { $0 = true }
    }
    await onThreads(1) { _ in while !isDone.value { executor.run() } }
    for call in calls {
      await #expect(throws: CancellationError.self) { try await call.value }
    }
    #expect(late.value == 0)
  }
}

/// Returns when the task is cancelled. The thread that cancels it continues after other tasks.
private func untilCancelled() async {
  let gate = AsyncGate()
  await withTaskCancellationHandler {
    await gate.wait()
  } onCancel: {
    let rest = DispatchSemaphore(value: 0)
    Task {
      for _ in 0..<100 { await Task.yield() }
      rest.signal()
    }
    rest.wait()
    gate.open()
  }
}
