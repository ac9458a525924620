import Synchronization

/// Stores one element for a comparison with the next.
///
/// The lock guards the element. The comparison runs without it, which is safe because sources and
/// iterators deliver one element at a time.
package final class LastElement<Element: Sendable>: Sendable {
  let element = Mutex<Element?>(nil)

  package init() {}

  var value: Element? { element.withLock { $0 } }

  /// Stores `new` unless it equals the stored element. Returns whether it was stored.
  package func replace(with new: Element, unless areEqual: (Element, Element) -> Bool)
    -> Bool
  {
    if let last = value, areEqual(last, new) { return false }
    let old = element.withLock { element in
      let old = element.take()
      element = new
      return old
    }
    // Keeps the release of the old element after the lock.
    withExtendedLifetime(old) {}
    return true
  }
}
