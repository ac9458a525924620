import Synchronization

/// An object that counts itself: what is left over was leaked.
final class Counted: Sendable {
  let number: Int
  private let live: LiveCount

  init(_ number: Int = 0, in live: LiveCount) {
    self.number = number
    self.live = live
    live.add(1)
  }

  deinit {
    live.add(-1)
  }
}

/// How many objects live, and how many ever did at once.
final class LiveCount: Sendable {
  private let counts = Mutex((now: 0, most: 0))

  var now: Int { counts.withLock { $0.now } }
  var most: Int { counts.withLock { $0.most } }

  fileprivate func add(_ difference: Int) {
    counts.withLock { counts in
      counts.now += difference
      counts.most = max(counts.most, counts.now)
    }
  }
}

/// Calls a closure when it goes away, as a user's element may.
final class Farewell: Sendable {
  private let onDeinit: @Sendable () -> Void

  init(_ onDeinit: @escaping @Sendable () -> Void) {
    self.onDeinit = onDeinit
  }

  deinit {
    onDeinit()
  }
}
