import Synchronization

/// Holds the responses of the server until they may pass one by one, so that the program prints
/// the same lines in whichever order they arrive.
///
/// A held response ignores a cancellation, so that it is as late as possible. The lock guards
/// which responses may pass, and which requests wait.
final class Answers: Sendable {
  private struct State {
    var areAllOpen = false
    var open: Set<String> = []
    var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]
  }

  private let state = Mutex(State())

  /// Lets the responses to a request, such as `GET session`, pass from now on.
  func open(_ request: String) {
    let waiting = state.withLock { state in
      state.open.insert(request)
      return state.waiting.removeValue(forKey: request) ?? []
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Lets all responses pass from now on.
  func openAll() {
    let waiting = state.withLock { state in
      state.areAllOpen = true
      defer { state.waiting = [:] }
      return state.waiting.values.flatMap(\.self)
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Waits until the responses to a request may pass.
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
