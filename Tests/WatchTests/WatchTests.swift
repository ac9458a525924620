import Foundation
import SharingOperation
import Synchronization
import Testing

@testable import watch

@Suite(.serialized, .timeLimit(.minutes(5))) struct WatchTests {
  @Test("The story displays every change of the file, and ends its watch twice")
  func story() async throws {
    try await withFile { file, client in
      let printed = Mutex<[String]>([])
      try await Story(file: file, client: client) { line in printed.withLock { $0.append(line) } }
        .run()
      let shown = printed.withLock { $0 }.filter { $0.hasPrefix("   ") }.map { $0.dropFirst(3) }
      #expect(
        shown == [
          "greeting = Hello", "greeting = Hello, volume = 3", "greeting = Hi, volume = 4",
          "\"greeting: Hi\" is no setting", "there is no file", "greeting = Hello again",
          "greeting = Bye",
        ])
      #expect(descriptorCount == 0)
    }
  }

  @Test("However fast a file changes, its last contents are displayed last")
  func burst() async throws {
    try await withFile { file, client in
      let controller = FileController(file)
      var watching = controller.isWatching.values.makeAsyncIterator()
      let store = client.store(
        for: SettingsQuery(file: file).retry(limit: 0).controlled(by: controller))
      var states = Optional(store.states.makeAsyncIterator())
      for round in 0..<300 {
        let options: Data.WritingOptions = round.isMultiple(of: 2) ? [] : .atomic
        try Data("round = \(round)".utf8).write(to: file, options: options)
        try Data().write(to: file.appendingPathExtension("other"))
      }
      while let state = await states?.next(), state.currentValue?.values["round"] != "299" {}
      #expect(store.currentValue?.values == ["round": "299"])
      states = nil
      while await watching.next() == true {}
    }
  }

  @Test("Subscribers share one descriptor, which is closed when the last one is cancelled")
  func descriptors() async throws {
    try await withFile { file, client in
      let controller = FileController(file)
      var watching = controller.isWatching.values.makeAsyncIterator()
      let store = client.store(
        for: SettingsQuery(file: file).retry(limit: 0).controlled(by: controller))
      for _ in 0..<100 {
        let subscriptions = (0..<3).map { _ in store.subscribe { _ in } }
        #expect(descriptorCount == 1)
        for subscription in subscriptions { subscription.cancel() }
        #expect(await watching.next() == true)
        #expect(await watching.next() == false)
        #expect(descriptorCount == 0)
      }
    }
  }

  @Test("A folder that cannot be watched is an error of the query")
  func noFolder() async throws {
    try await withFile { file, client in
      let absent = file.appending(path: "absent")
      let errors = Mutex<[SettingsError]>([])
      let store = client.store(
        for: SettingsQuery(file: absent).retry(limit: 0).controlled(by: FileController(absent)))
      let subscription = store.subscribe { event in
        if case .stateChanged(let state) = event, let error = state.error {
          errors.withLock { if $0.last != error { $0.append(error) } }
        }
      }
      await #expect(throws: SettingsError.noFile) { try await store.fetch() }
      #expect(errors.withLock { $0 } == [.notWatched(ENOENT), .noFile])
      subscription.cancel()
      #expect(descriptorCount == 0)
    }
  }

  private func withFile(_ body: (URL, OperationClient) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder.appending(path: "settings"), OperationClient())
  }

  /// The number of descriptors of this process that watch files.
  private var descriptorCount: Int {
    let folder = "/proc/self/fd"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.count {
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
      return target?.hasSuffix("inotify") == true
    }
  }
}
