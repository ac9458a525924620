import ReactiveStreams
import Synchronization

/// Keeps what was told to it, in the order in which it was told.
final class Recorder<Element: Sendable>: Sendable {
  private let storage = Mutex<[Element]>([])

  var elements: [Element] { storage.withLock { $0 } }
  var count: Int { storage.withLock { $0.count } }

  func record(_ element: Element) {
    storage.withLock { $0.append(element) }
  }
}

/// Holds one value that several threads put in and take out.
final class Box<Value: Sendable>: Sendable {
  fileprivate let storage: Mutex<Value>

  init(_ value: Value) {
    storage = Mutex(value)
  }

  var value: Value { storage.withLock { $0 } }

  /// Puts a value in and gives the one before, so that it is released without the lock.
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
  /// Cancels what is in the box, if something is.
  func cancel() {
    exchange(nil)?.cancel()
  }
}

extension Box where Value == Int {
  func increment() {
    storage.withLock { $0 += 1 }
  }
}
