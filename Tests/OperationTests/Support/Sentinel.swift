/// An element of a path that calls a closure when it is released. All with one number are equal.
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
