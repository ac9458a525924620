public import Foundation
public import FoundationNetworking

extension URLSession {
  /// Sends a request, in a task of its own that is never cancelled.
  ///
  /// On Linux, a task that is cancelled inside of `data(for:)` just as the answer arrives can
  /// deadlock: Foundation's `URLSessionTask.cancel` waits for the work queue of the session, which
  /// waits for the status of the task, and that is locked meanwhile. A caller who is cancelled waits
  /// for the answer, so give the session a timeout.
  public func answer(to request: URLRequest) async throws -> (Data, URLResponse) {
    try await Task { try await data(for: request) }.value
  }
}
