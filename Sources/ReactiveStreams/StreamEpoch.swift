import Synchronization

/// The time in which an element of a stream counts: until `flatMapLatest` follows another stream.
///
/// An element carries its epoch, so that the reader of a state stream drops an old one however late it
/// takes it. An epoch ends with each of the epochs that it is a part of, and once it was found to be
/// over, it stays so.
///
/// The lock guards the state. No other epoch is called under it.
package final class StreamEpoch: Sendable {
  private struct State: Sendable {
    var isOver = false
    var outer: [StreamEpoch]
    var renewalCount = 0
  }

  private let state: Mutex<State>

  init(within outer: [StreamEpoch?] = []) { state = Mutex(State(outer: outer.compactMap(\.self))) }

  package var isOver: Bool {
    while true {
      let seen = state.withLock { $0 }
      if seen.isOver { return true }
      guard seen.outer.contains(where: \.isOver) else { return false }
      state.withLock { if $0.renewalCount == seen.renewalCount { $0.isOver = true } }
    }
  }

  func end() { state.withLock { $0.isOver = true } }

  /// Makes the epoch a part of another one, because the same element came again in that. Returns
  /// `false` if this one is over, so that a reader may have dropped the element.
  func renew(within outer: StreamEpoch?) -> Bool {
    let replaced = state.withLock { state -> [StreamEpoch]? in
      if state.isOver { return nil }
      state.renewalCount += 1
      return exchange(&state.outer, with: outer.map { [$0] } ?? [])
    }
    return replaced != nil
  }

  /// Returns the epoch of an element that was made from elements of these.
  static func common(_ epochs: [StreamEpoch?]) -> StreamEpoch? {
    let own = epochs.compactMap(\.self)
    return own.count > 1 ? StreamEpoch(within: own) : own.first
  }
}
