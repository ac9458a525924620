import Synchronization

/// Runs the jobs of its tasks only during ``run()``, on the calling thread.
///
/// After ``run()``, every task of the executor has ended or is suspended.
final class ManualExecutor: TaskExecutor {
  private let jobs = Mutex<[UnownedJob]>([])

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
  }

  /// Runs until no job is left.
  func run() {
    while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }

  /// Starts a task; its first step runs with the next ``run()``.
  @discardableResult
  func start<Output: Sendable>(
    _ body: sending @escaping @isolated(any) () async -> Output
  ) -> Task<Output, Never> {
    Task(executorPreference: self, operation: body)
  }

  /// Starts a task that reads a sequence to its end and records the elements.
  func read<Elements: AsyncSequence & Sendable>(
    _ elements: Elements, into recorder: Recorder<Elements.Element>
  ) -> Task<Void, Never> where Elements.Element: Sendable, Elements.Failure == Never {
    start {
      for await element in elements { recorder.record(element) }
    }
  }
}
