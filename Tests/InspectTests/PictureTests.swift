import Foundation
import Testing

@testable import inspect

/// Draws the pictures of the README. `Tests/screenshots` runs it.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: Pictures.folder != nil, "Tests/screenshots makes the pictures"))
struct PictureTests {
  @Test("The terminal form") func terminal() throws {
    var model = try Blog.model(Pictures.stores)
    model.receive(try Blog.message(Pictures.changes))
    model.receive(try Blog.message(Pictures.detail))
    let size = TerminalSize(columns: 100, rows: 26)
    let screen = TerminalScreen(model: model, size: size, now: Blog.now)
    var view = TerminalView()
    let height = TerminalScreen.height(size)
    for key in [Key.character("/"), .character("3"), .enter, .end, .escape] {
      view.update(model, height: height)
      _ = view.press(key, model: model, height: height)
    }
    try Pictures.write(ScreenDrawing(size: size).svg(screen.lines(&view)), "inspect-terminal.svg")
    _ = view.press(.enter, model: model, height: height)
    try Pictures.write(ScreenDrawing(size: size).svg(screen.lines(&view)), "inspect-detail.svg")
  }

  @Test("The page", .enabled(if: Browser.path != nil)) func page() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let program = try FakeProgram(runtime)
      let web = try WebChild(program)
      let browser = try Browser()
      try browser.open(web.address + "#posts/3")
      let peer = try program.serveBlog(Pictures.stores)
      try peer.send(Pictures.changes)
      #expect(try peer.command().store == 13)
      try peer.send(Pictures.detail)
      for isDark in [false, true] {
        try browser.show(width: 1280, height: 820, isDark: isDark)
        try browser.wait(until: "$('rules').textContent.includes('60 s')")
        let name = "inspect-web\(isDark ? "~dark" : "").png"
        try Pictures.write(try browser.picture(), name)
      }
      withExtendedLifetime(peer) {}
    }
  }
}

/// The data of the pictures.
enum Pictures {
  static let folder = ProcessInfo.processInfo.environment["INSPECT_PICTURES"]

  static func write(_ text: String, _ name: String) throws {
    try write(Data(text.utf8), name)
  }

  static func write(_ data: Data, _ name: String) throws {
    let folder = try #require(folder)
    try data.write(to: URL(filePath: folder).appending(path: name))
  }

  private static let failed = Blog.store(
    13, ["posts", "3"], "PostQuery", status: "failure", isStale: true, age: 2,
    error: "the server answered with status 503",
    value: #"Post(id: 3, title: "Notes from a train", body: "The window was open.", authorId: 2)"#,
    runs: 5, subscribers: 1, reads: [1], readBy: [22, 33])

  private static let others: [Blog.Fields] =
    [
      Blog.store(
        1, ["posts"], "PostsQuery", age: 8, value: "[Post(id: 1, …), …]", runs: 12,
        subscribers: 3, readBy: [11, 12, 13, 14, 15]),
      Blog.store(11, ["posts", "1"], "PostQuery", age: 8, runs: 3, reads: [1], readBy: [21, 31]),
      Blog.store(
        12, ["posts", "2"], "PostQuery", status: "loading", age: 74, leases: 4, reads: [1],
        readBy: [22]),
      Blog.store(
        14, ["posts", "4"], "PostQuery", isStale: true, age: 192, runs: 2, reads: [1], readBy: [23]),
      Blog.store(15, ["posts", "5"], "PostQuery", age: 21, runs: 1, reads: [1]),
      Blog.store(
        21, ["authors", "1"], "AuthorQuery", age: 41, runs: 1, subscribers: 2, reads: [11]),
      Blog.store(
        22, ["authors", "2"], "AuthorQuery", age: 8, runs: 2, subscribers: 1, reads: [12, 13]),
      Blog.store(
        23, ["authors", "5"], "AuthorQuery", status: "failure", age: 3,
        error: "the server did not answer in time", runs: 4, reads: [14]),
      Blog.store(
        31, ["comments", "1"], "CommentsQuery", age: 12, runs: 6, subscribers: 12, reads: [11]),
      Blog.store(
        33, ["comments", "3"], "CommentsQuery", status: "loading", age: nil, leases: 12, reads: [13]
      ),
      Blog.store(
        41, ["drafts", "create"], "CreatePost", kind: "mutation", status: "paused", age: nil,
        runs: 2, queued: 2),
      Blog.store(
        42, ["drafts", "autosave"], "SaveDraft", kind: "mutation", status: "idle", age: nil, runs: 0
      ),
      Blog.store(
        51, ["search", "train"], "SearchQuery", kind: "paginated", isStale: true, age: 4_000,
        runs: 3),
      Blog.store(
        52, ["search", "tunnel"], "SearchQuery", kind: "paginated", age: 30, runs: 1, subscribers: 1
      ),
    ]

  /// The stores, with the runs in flight that match their status.
  static var stores: [Blog.Fields] {
    ([failed] + others).map { store in
      let isRunning = ["loading", "paused"].contains(store["status"] as? String)
      return store.merging(["runs": isRunning ? 1 : 0]) { $1 }
    }
  }

  static var changes: String {
    let runs: [Blog.Fields] = [
      Blog.event(13, "runStarted", after: -61, run: 1, cause: "first subscriber"),
      Blog.event(13, "runEnded", after: -60.7, run: 1, outcome: "success"),
      Blog.event(13, "runStarted", after: -40, run: 2, cause: "refetch"),
      Blog.event(13, "joined", after: -39.9, run: 2),
      Blog.event(13, "joined", after: -39.8, run: 2),
      Blog.event(13, "runEnded", after: -39.5, run: 2, outcome: "success"),
      Blog.event(13, "runStarted", after: -24, run: 3, cause: "refetch"),
      Blog.event(13, "paused", after: -23.8, run: 3),
      Blog.event(13, "runEnded", after: -22.6, run: 3, outcome: "cancelled"),
      Blog.event(13, "runStarted", after: -14, run: 4, cause: "invalidation of posts"),
      Blog.event(13, "waiting", after: -13.8, run: 4),
      Blog.event(13, "attempt", after: -13.5, run: 4, attempt: 1),
      Blog.event(13, "runEnded", after: -13.1, run: 4, outcome: "success"),
      Blog.event(13, "runStarted", after: -4, run: 5, cause: "poll"),
      Blog.event(13, "waiting", after: -3.7, run: 5),
      Blog.event(13, "attempt", after: -3.4, run: 5, attempt: 1),
      Blog.event(13, "waiting", after: -3.1, run: 5),
      Blog.event(13, "attempt", after: -2.5, run: 5, attempt: 2),
      Blog.event(13, "runEnded", after: -2, run: 5, outcome: "failure", message: "status 503"),
    ]
    return Blog.changes(events: runs)
  }

  static var detail: String {
    let more: Blog.Fields = [
      "rules": [
        ["name": "stale after", "value": "60 s"], ["name": "retries", "value": "2"],
        ["name": "backoff", "value": "exponential from 150 ms"],
        ["name": "deduplicated", "value": "yes"],
      ]
    ]
    return Blog.json([
      "type": "detail", "time": Blog.now,
      "store": failed.merging(["runs": 0]) { $1 }.merging(more) { $1 },
    ])
  }
}
