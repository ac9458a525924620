import ReactiveStreams
import Synchronization

/// Records elements in the order of the calls.
final class Recorder<Element: Sendable>: Sendable {
  private let storage = Mutex<[Element]>([])

  var elements: [Element] { storage.withLock { $0 } }
  var count: Int { storage.withLock { $0.count } }

  func record(_ element: Element) {
    storage.withLock { $0.append(element) }
  }
}

/// Stores one value that several threads exchange.
final class Box<Value: Sendable>: Sendable {
  fileprivate let storage: Mutex<Value>

  init(_ value: Value) {
    storage = Mutex(value)
  }

  var value: Value { storage.withLock { $0 } }

  /// Stores a value and returns the one before, to be released without the lock.
  @discardableResult
  func exchange(_ new: Value) -> Value {
    storage.withLock { value in
      let old = value
      value = new
      return old
    }
  }
}

extension Box where Value == OperationSubscription? {
  /// Cancels and removes the stored subscription.
  func cancel() {
    exchange(nil)?.cancel()
  }
}

extension Box where Value == Int {
  func increment() {
    storage.withLock { $0 += 1 }
  }
}
