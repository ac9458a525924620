/// An element of a path that calls when it goes away. All of one number are equal.
final class Sentinel: Hashable, Sendable {
  let number: Int
  let onEnd: @Sendable () -> Void

  init(_ number: Int = 0, _ onEnd: @escaping @Sendable () -> Void) {
    self.number = number
    self.onEnd = onEnd
  }

  deinit { onEnd() }

  static func == (lhs: Sentinel, rhs: Sentinel) -> Bool { lhs.number == rhs.number }
  func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
