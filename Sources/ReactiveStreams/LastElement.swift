import Synchronization

/// Stores one element. The lock guards it, and an element that is replaced is released without the lock.
package final class LastElement<Element: Sendable>: Sendable {
  private let element: Mutex<Element?>

  package init(_ element: Element? = nil) { self.element = Mutex(element) }

  package var value: Element? { element.withLock { $0 } }

  /// Stores an element if none is stored. Returns the stored one.
  package func setIfNone(_ new: Element) -> Element {
    element.withLock { element in
      if let element { return element }
      element = new
      return new
    }
  }

  /// Returns the stored element, which is not stored any more.
  package func take() -> Element? { element.withLock { exchange(&$0, with: nil) } }

  /// Stores `new`, and releases the stored element without the lock.
  package func set(_ new: Element?) {
    withExtendedLifetime(element.withLock { exchange(&$0, with: new) }) {}
  }
}
