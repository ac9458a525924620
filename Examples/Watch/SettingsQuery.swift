import Foundation
import SharingOperation

/// The contents of a file of settings: a name and a value in each line.
struct Settings: Sendable, Equatable, CustomStringConvertible {
  let values: [String: String]

  var description: String {
    values.sorted { $0.key < $1.key }.map { "\($0) = \($1)" }.joined(separator: ", ")
  }
}

/// An error of a file without settings.
enum SettingsError: Error, Equatable, CustomStringConvertible {
  case noFile
  case badLine(String)
  case notWatched(Int32)

  var description: String {
    switch self {
    case .noFile: "there is no file"
    case .badLine(let line): "\"\(line)\" is no setting"
    case .notWatched(let number): "the file cannot be watched: \(String(cString: strerror(number)))"
    }
  }
}

/// Reads a file of settings.
struct SettingsQuery: QueryRequest, Hashable {
  let file: URL

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Settings, SettingsError>
  ) async throws(SettingsError) -> Settings {
    guard let text = try? String(contentsOf: file, encoding: .utf8) else { throw .noFile }
    var values: [String: String] = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: "=").map { $0.trimmingCharacters(in: .whitespaces) }
      guard parts.count == 2 else { throw .badLine(String(line)) }
      values[parts[0]] = parts[1]
    }
    return Settings(values: values)
  }
}
