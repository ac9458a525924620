import Glibc

/// The time for which the current thread has a processor while it performs a body, so that other threads of a
/// busy machine do not count.
public func processorTime(of body: () -> Void) -> Duration {
  let start = processorTime()
  body()
  return processorTime() - start
}

/// The time for which the current thread has had a processor since it began.
private func processorTime() -> Duration {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
