import Synchronization

/// Remembers one element for a comparison with the next.
///
/// The lock guards the element; the comparison runs without it, which the one-at-a-time rule of
/// sources and iterators makes safe.
package final class LastElement<Element: Sendable>: Sendable {
  let element = Mutex<Element?>(nil)

  package init() {}

  /// Takes `new` in, unless it equals what is there; tells whether it did.
  package func replace(with new: Element, unless areEqual: (Element, Element) -> Bool)
    -> Bool
  {
    let last = element.withLock { $0 }
    if let last, areEqual(last, new) { return false }
    let old = element.withLock { element in
      let old = element.take()
      element = new
      return old
    }
    // Released without the lock: the optimiser moves the release of an unused result under it.
    withExtendedLifetime(old) {}
    return true
  }
}
