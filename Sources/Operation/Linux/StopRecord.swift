/// How often the program was stopped, and whether the last stop is over, in one number that signal
/// handlers change atomically.
struct StopRecord: Sendable {
  /// Bit 0: continued after the last stop. Bit 1: the attempt to stop has returned. The other bits
  /// count the stops.
  private(set) var rawValue: UInt64 = 0b01

  var stopCount: UInt64 { rawValue >> 2 }
  /// Whether the program was continued after the last stop.
  var isContinued: Bool { rawValue & 0b01 != 0 }
  /// Whether the program runs: the last stop is over, or had no effect.
  var isRunning: Bool { rawValue & 0b11 != 0 }
  var activity: ApplicationActivity { isRunning ? .foreground : .background }

  /// Notes that the program is about to be stopped.
  mutating func stop() { rawValue = (stopCount + 1) << 2 }

  /// Notes that the attempt to stop the program has returned.
  mutating func stopReturned() { rawValue |= 0b10 }

  /// Notes that the program was continued. Without a stop before it, it was stopped by a signal that
  /// no handler can catch.
  mutating func continued() {
    if isContinued { stop() }
    rawValue |= 0b01
  }

  /// Returns the activities since an earlier record, in their order.
  func activities(since earlier: StopRecord) -> [ApplicationActivity] {
    stopCount != earlier.stopCount && isRunning ? [.background, .foreground] : [activity]
  }
}
