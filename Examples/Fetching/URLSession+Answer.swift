public import Foundation
public import FoundationNetworking

// Copy this file into your program. On Linux, a task that is cancelled inside of
// `URLSession.data(for:)` just as the response arrives can deadlock: Foundation's
// `URLSessionTask.cancel` waits for the work queue of the session while it holds the status of the
// task, and the queue waits for that status. A library that cancels runs without leases causes it
// sooner or later.

extension URLSession {
  /// Sends a request, in a task of its own that is never cancelled.
  ///
  /// A caller that is cancelled waits for the response, so set a timeout for the session:
  /// `timeoutIntervalForRequest` of its configuration, in seconds. A store's caller does not wait,
  /// and the store drops the response.
  ///
  /// - Parameter request: The request.
  /// - Returns: The body and the head of the response, whatever its status is.
  /// - Throws: What `data(for:)` throws, such as a `URLError`.
  public func answer(to request: URLRequest) async throws -> (Data, URLResponse) {
    try await Task { try await data(for: request) }.value
  }
}
