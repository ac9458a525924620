import Fetching
import Foundation
import FoundationNetworking

struct Post: Codable, Identifiable, Equatable {
  let id: Int
  let title: String
  let body: String
  let authorId: Author.ID
}

/// A post that was not added to the blog yet.
struct Draft: Codable, Equatable {
  let title: String
  let body: String
  let authorId: Author.ID
}

struct Author: Codable, Identifiable, Equatable {
  let id: Int
  let name: String
  let bio: String
}

struct Comment: Codable, Identifiable, Equatable {
  let id: Int
  let author: String
  let text: String
}

/// An error of a request to a blog.
///
/// The requests throw this and nothing else, so a reader of their errors needs no cast.
struct BlogError: Error, Equatable {
  enum Reason: Equatable {
    case noConnection(String)
    case status(Int)
    case notABlog
  }

  let url: URL
  let reason: Reason

  /// A Boolean value that indicates whether the same request may succeed later.
  var isTemporary: Bool {
    switch reason {
    case .noConnection: true
    case .status(let status): status >= 500 || status == 429
    case .notABlog: false
    }
  }
}

extension BlogError: CustomStringConvertible {
  var description: String { "\(url): \(reason)" }
}

extension BlogError.Reason: CustomStringConvertible {
  var description: String {
    switch self {
    case .noConnection(let details): details
    case .status(let status): "the server answered with status \(status)"
    case .notABlog: "the server answered with something other than the JSON of a blog"
    }
  }
}

/// Reads the routes of a blog, and writes to them.
struct BlogAPI: Sendable {
  private let url: URL
  private let session: URLSession

  /// Creates a reader with a timeout for each attempt, in seconds. With the default, all attempts
  /// together take well under ten seconds.
  init(url: URL, patience: TimeInterval = 2) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = patience
    // The stores of the client are the cache. One below them would hide requests from the server.
    configuration.urlCache = nil
    self.url = url
    session = URLSession(configuration: configuration)
  }

  /// Gets the JSON of a route such as `posts/7`.
  func get<Value: Decodable>(_ route: String) async throws(BlogError) -> Value {
    try await send(URLRequest(url: url.appending(path: route)))
  }

  /// Posts a value as JSON to a route, and returns the stored value.
  ///
  /// The server ignores a second request with the same key.
  func post<Value: Decodable>(
    _ value: some Encodable, to route: String, key: String?
  ) async throws(BlogError) -> Value {
    var request = URLRequest(url: url.appending(path: route))
    request.httpMethod = "POST"
    request.setValue(key, forHTTPHeaderField: "Idempotency-Key")
    request.httpBody = try? JSONEncoder().encode(value)
    return try await send(request)
  }

  private func send<Value: Decodable>(_ request: URLRequest) async throws(BlogError) -> Value {
    let url = request.url ?? url
    let (data, response): (Data, URLResponse)
    do {
      (data, response) = try await session.answer(to: request)
    } catch {
      throw BlogError(url: url, reason: .noConnection(Self.details(of: error)))
    }
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else {
      throw BlogError(url: url, reason: .status(status))
    }
    do {
      return try JSONDecoder().decode(Value.self, from: data)
    } catch {
      throw BlogError(url: url, reason: .notABlog)
    }
  }

  private static func details(of error: any Error) -> String {
    // On Linux, the descriptions of these two are a bare number and a message of libcurl.
    switch (error as? URLError)?.code {
    case .timedOut: "the server did not answer in time"
    case .cannotConnectToHost: "there is no server to connect to"
    default: error.localizedDescription
    }
  }
}
