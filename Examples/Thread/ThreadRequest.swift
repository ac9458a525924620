import Foundation
import SharingOperation

/// The thread below a comment.
struct ThreadRequest: TreeRequest, Hashable {
  let rootNodeId: Int

  func fetchTree(for id: Int, in context: OperationContext) async throws -> Comment {
    let api = CommentAPI(url: context.serverURL)
    context.report("-> asking for comment \(id)")
    do {
      let comment = try await api.comment(id)
      context.report("<- comment \(id), with \(comment.children.count) below it")
      return comment
    } catch {
      context.report("<- comment \(id): \(error)")
      throw error
    }
  }
}

extension ThreadRequest {
  /// The request with retries, for an unreliable server. The modifiers are those of every request.
  /// None was written for this operation type.
  var resilient: some StatefulOperationRequest<Comment, State> {
    retry(limit: 2).backoff(.constant(.milliseconds(100))).stale(after: .seconds(60))
  }
}

/// The service of the requests. A client passes its context to every store.
extension OperationContext {
  /// The address of the comments.
  var serverURL: URL {
    get { self[ServerURLKey.self] }
    set { self[ServerURLKey.self] = newValue }
  }

  /// Receives a line about the progress of a run.
  var report: @Sendable (String) -> Void {
    get { self[ReportKey.self] }
    set { self[ReportKey.self] = newValue }
  }

  private enum ServerURLKey: Key {
    static var defaultValue: URL {
      preconditionFailure("Set `serverURL` in the context of the client.")
    }
  }

  private enum ReportKey: Key {
    static var defaultValue: @Sendable (String) -> Void { { _ in } }
  }
}
