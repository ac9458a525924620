import Synchronization

/// Holds the answers of the server until they are let through one by one, so that the program
/// prints the same whichever answer arrives first.
///
/// An answer that waits ignores a cancellation: it is as late as it can be. The lock guards which
/// answers may pass, and which requests wait.
final class Answers: Sendable {
  private struct State {
    var areAllOpen = false
    var open: Set<String> = []
    var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]
  }

  private let state = Mutex(State())

  /// Lets the answers to a request, such as `GET session`, through from now on.
  func open(_ request: String) {
    let waiting = state.withLock { state in
      state.open.insert(request)
      return state.waiting.removeValue(forKey: request) ?? []
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Lets all answers through from now on.
  func openAll() {
    let waiting = state.withLock { state in
      state.areAllOpen = true
      defer { state.waiting = [:] }
      return state.waiting.values.flatMap(\.self)
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Waits until the answers to a request may pass.
  func pass(_ request: String) async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        let isOpen = state.areAllOpen || state.open.contains(request)
        if !isOpen { state.waiting[request, default: []].append(continuation) }
        return isOpen
      }
      if isOpen { continuation.resume() }
    }
  }
}
