import Synchronization

/// Stores one element, such as for a comparison with the next.
///
/// The lock guards the element. A comparison runs without it, which is safe because sources and
/// iterators deliver one element at a time.
package final class LastElement<Element: Sendable>: Sendable {
  private let element = Mutex<Element?>(nil)

  package init() {}

  package var value: Element? { element.withLock { $0 } }

  /// Stores `new`, and releases the stored element without the lock.
  package func set(_ new: Element?) {
    let old = element.withLock { exchange(&$0, with: new) }
    withExtendedLifetime(old) {}
  }
}
