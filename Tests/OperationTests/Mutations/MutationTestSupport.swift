import Operation
import Synchronization

/// A desk that takes calls, and answers each when a test allows it. It ignores cancellation.
final class MutationDesk: Sendable {
  struct Refused: Error, Equatable {
    var name = ""
  }

  private struct Book: Sendable {
    var begun: [String] = []
    var ended: [String] = []
    var isClosed = false
    var refused: [String: Int] = [:]
    var waiting: [(name: String, waiter: CheckedContinuation<Void, Never>)] = []
  }

  private let book = Mutex(Book())

  var begun: [String] { book.withLock { $0.begun } }
  var ended: [String] { book.withLock { $0.ended } }
  var waiting: [String] { book.withLock { $0.waiting.map(\.name) } }

  func close() { book.withLock { $0.isClosed = true } }
  func refuse(_ name: String, times: Int = 1) { book.withLock { $0.refused[name] = times } }

  /// Answers all waiting and all later calls.
  func open() {
    let waiting = book.withLock { book in
      book.isClosed = false
      defer { book.waiting = [] }
      return book.waiting
    }
    for entry in waiting { entry.waiter.resume() }
  }

  func answer(_ name: String) {
    let entry = book.withLock { book in
      book.waiting.firstIndex { $0.name == name }.map { book.waiting.remove(at: $0) }
    }
    entry?.waiter.resume()
  }

  /// Waits until these calls wait for an answer, in whatever order.
  func waiting(_ names: String...) async { await waiting(names) }

  func waiting(_ names: [String]) async {
    await Settled.when { waiting.sorted() == names.sorted() }
  }

  func take(_ name: String) async throws(Refused) -> String {
    await withCheckedContinuation { waiter in
      let isClosed = book.withLock { book in
        book.begun.append(name)
        if book.isClosed { book.waiting.append((name, waiter)) }
        return book.isClosed
      }
      if !isClosed { waiter.resume() }
    }
    let isRefused = book.withLock { book in
      book.ended.append(name)
      let remaining = book.refused[name, default: 0]
      book.refused[name] = max(remaining - 1, 0)
      return remaining > 0
    }
    if isRefused { throw Refused(name: name) }
    return "done \(name)"
  }
}

/// A call at a desk whose failure is any error.
struct Call: MutationRequest {
  let desk: MutationDesk
  var path: OperationPath = ["call"]

  func mutate(
    with arguments: String, in context: OperationContext,
    with continuation: OperationContinuation<String, any Error>
  ) async throws -> String { try await desk.take(arguments) }
}

/// A call at a desk with its own failure type.
struct TypedCall: MutationRequest {
  let desk: MutationDesk
  var path: OperationPath { ["typed-call"] }

  func mutate(
    with arguments: String, in context: OperationContext,
    with continuation: OperationContinuation<String, MutationDesk.Refused>
  ) async throws(MutationDesk.Refused) -> String { try await desk.take(arguments) }
}

typealias CallState = MutationState<String, String, any Error>
typealias CallStore = OperationStore<CallState>

extension OperationStore where State == CallState {
  /// The arguments in the history, with the status of each.
  var lines: [String] {
    state.history.map { attempt -> String in
      switch attempt.status {
      case .loading: "\(attempt.arguments) …"
      case .result(.success(let value)): "\(attempt.arguments): \(value)"
      case .result(.failure): "\(attempt.arguments) failed"
      case .idle, .paused: "\(attempt.arguments) ?"
      }
    }
  }
}
