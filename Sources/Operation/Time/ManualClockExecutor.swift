import Dispatch

/// Runs the tasks of the library that use a manual clock, and counts for it the jobs that are queued or
/// being performed.
///
/// A task that is resumed is queued before the call that resumes it returns, so no work is missed
/// between two tasks.
final class ManualClockExecutor: TaskExecutor {
  private let clock: ManualClock

  init(_ clock: ManualClock) { self.clock = clock }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    clock.beginJob()
    DispatchQueue.global().async { [self] in
      job.runSynchronously(on: asUnownedTaskExecutor())
      clock.endJob()
    }
  }
}

extension OperationClock {
  /// The executor of the library's tasks that use this clock; `nil` for that of the process.
  var executor: (any TaskExecutor)? { (self as? ManualClock).map(ManualClockExecutor.init) }
}
