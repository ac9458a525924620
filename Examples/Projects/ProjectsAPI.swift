import Fetching
import Foundation
import FoundationNetworking

struct User: Codable, Identifiable, Equatable {
  let id: Int
  let name: String
}

struct Project: Codable, Identifiable, Equatable {
  let id: Int
  let ownerId: User.ID
  let title: String
}

struct OpenTask: Codable, Identifiable, Equatable {
  let id: Int
  let projectId: Project.ID
  let title: String
}

/// A refusal of the server.
struct ProjectsError: Error, Equatable, CustomStringConvertible {
  let status: Int
  let message: String

  var description: String { message }
}

/// Sends requests to the server. Every response waits until ``answers`` lets it pass.
struct ProjectsAPI: Sendable {
  let url: URL
  let answers: Answers

  func currentUser() async throws -> User { try await send("GET", "session") }

  func projects(of userID: User.ID) async throws -> [Project] {
    try await send("GET", "users/\(userID)/projects")
  }

  func openTasks(in projectIDs: [Project.ID]) async throws -> [OpenTask] {
    let ids = projectIDs.map(String.init).joined(separator: ",")
    return try await send("GET", "open-tasks?projects=\(ids)")
  }

  /// Signs a user in, in place of the present one; `nil` signs out.
  func changeUser(to userID: User.ID?) async throws -> User? {
    guard let userID else { return try await send("DELETE", "session") }
    return try await send("POST", "users/\(userID)/session")
  }

  private func send<Answer: Decodable>(_ method: String, _ route: String) async throws -> Answer {
    guard let url = URL(string: route, relativeTo: url) else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    let (data, response) = try await URLSession.shared.answer(to: request)
    await answers.pass("\(method) \(route)")
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else {
      let refusal = try? JSONDecoder().decode(Refusal.self, from: data)
      throw ProjectsError(status: status, message: refusal?.message ?? "status \(status)")
    }
    return try JSONDecoder().decode(Answer.self, from: data)
  }

  private struct Refusal: Decodable {
    let message: String
  }
}
