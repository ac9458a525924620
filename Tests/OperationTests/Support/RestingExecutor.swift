import Dispatch

/// Runs the jobs of its tasks on the threads of a queue. A test can wait until all tasks wait for
/// something or have ended.
final class RestingExecutor: TaskExecutor {
  private let unfinishedJobs = Monitor(0)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    unfinishedJobs.update { $0 += 1 }
    DispatchQueue.global().async { [self] in
      job.runSynchronously(on: asUnownedTaskExecutor())
      unfinishedJobs.update { $0 -= 1 }
    }
  }

  /// Waits until no job is left. Then only an event from outside resumes a task.
  func rest() async { await unfinishedJobs.wait { $0 == 0 } }
}
