import Foundation
import SharingOperation

/// Watches a file of settings that it changes itself: a controller feeds a query from outside.
@main
enum Program {
  static func main() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(path: "settings")
    try await Story(file: file, client: OperationClient()) { print($0) }.run()
  }
}
