import Operation
import Synchronization

/// A log of elements in their order, which tests wait for.
final class EventLog<Element: Sendable>: Sendable {
  private struct State {
    var values: [Element] = []
    var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  var values: [Element] { state.withLock { $0.values } }
  var count: Int { values.count }

  /// Releases the elements.
  func clear() {
    let old = state.withLock { state in
      defer { state.values = [] }
      return state.values
    }
    withExtendedLifetime(old) {}
  }

  @discardableResult
  func append(_ element: Element) -> Int {
    let (count, ready) = state.withLock { state in
      state.values.append(element)
      let count = state.values.count
      let ready = state.waiters.filter { $0.count <= count }.map(\.continuation)
      state.waiters.removeAll { $0.count <= count }
      return (count, ready)
    }
    for continuation in ready { continuation.resume() }
    return count
  }

  /// Waits until there are at least `count` elements.
  func wait(for count: Int) async {
    await withCheckedContinuation { continuation in
      let isReady = state.withLock { state in
        if state.values.count >= count { return true }
        state.waiters.append((count, continuation))
        return false
      }
      if isReady { continuation.resume() }
    }
  }
}

/// Returns the issues that were reported while `body` ran, and its result.
func issues<Output>(
  in body: nonisolated(nonsending) () async throws -> Output
) async rethrows -> (issues: [OperationIssue], output: Output) {
  let log = EventLog<OperationIssue>()
  let output = try await OperationIssue.withHandler({ log.append($0) }, operation: body)
  return (log.values, output)
}
