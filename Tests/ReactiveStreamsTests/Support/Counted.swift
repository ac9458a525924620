import Synchronization

/// An object that is counted while it exists, to find leaks.
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

/// The number of objects that exist, and the highest number so far.
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

/// Calls a closure in its deinitialiser, as an element of a user may.
final class DeinitAction: Sendable {
  private let onDeinit: @Sendable () -> Void

  init(_ onDeinit: @escaping @Sendable () -> Void) {
    self.onDeinit = onDeinit
  }

  deinit {
    onDeinit()
  }
}
