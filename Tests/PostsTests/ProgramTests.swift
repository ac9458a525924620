import Foundation
import LoopbackServer
import Testing

@testable import posts

/// Runs the executable that is built beside these tests.
@Suite struct ProgramTests {
  @Test("The program prints retries and one request for many readers, and ends with 0")
  func success() async throws {
    let ending = try await Program.run([])
    #expect(ending.status == 0)
    #expect(ending.errors == "")
    let lines = ending.output.split(separator: "\n")
    #expect(lines.first?.hasPrefix("Reading the blog at http://127.0.0.1:") == true)
    #expect(lines.last == "12 readers asked at once; the server was asked once")
    #expect(lines.contains("attempt 2 of 3: the server answered with status 503; trying again"))
    #expect(!ending.output.contains("\u{1B}"))
  }

  @Test("--api reads another server")
  func api() async throws {
    let blog = try Blog()
    defer { blog.server.stop() }
    let ending = try await Program.run(["--api", blog.server.baseURL.absoluteString])
    #expect(ending.status == 0)
    #expect(ending.output.hasSuffix("12 readers asked at once; the answer came once\n"))
    #expect(blog.server.requestCount(for: "/posts") == 1)
  }

  @Test("--offline-demo writes two posts that wait for the connection, and always prints the same")
  func offlineDemo() async throws {
    let ending = try await Program.run(["--offline-demo"])
    #expect(ending.status == 0 && ending.errors == "")
    #expect(
      ending.output == """
        The connection is gone. Two posts are written all the same.
          "Notes from a train" is paused
          "Notes from a tunnel" is paused
          2 calls wait; the server has been asked 0 times
        The connection is back. The posts go through in the order of their calls.
          "Notes from a train" is post 61
          "Notes from a tunnel" is post 62
          0 calls wait; the server has been asked 2 times

        """)
  }

  @Test("--offline-demo with --state delivers posts once and in order after a kill")
  func restartDemo() async throws {
    try await withDirectory { directory in
      for _ in 1...2 {
        let ending = try await Program.run(["--offline-demo", "--state", directory])
        #expect(ending.status == 0 && ending.errors == "")
        #expect(
          ending.output == """
            A program without a connection writes two posts.
              "Notes from a train" is in the outbox
              "Notes from a tunnel" is in the outbox
            It was killed. The next program has a connection.
              2 calls are made again
              0 calls are left
            The server was asked 2 times.
              "Notes from a train" is post 61, and arrived once
              "Notes from a tunnel" is post 62, and arrived once

            """)
      }
    }
  }

  @Test("--state starts with saved values, with a server and without one")
  func state() async throws {
    try await withDirectory { directory in
      let first = try await Program.run(["--state", directory])
      #expect(first.status == 0 && first.errors == "")
      #expect(first.output.contains("posts: loading\n"))
      let second = try await Program.run(["--state", directory])
      #expect(second.status == 0 && second.errors == "")
      #expect(!second.output.contains("posts: loading\n"))
      #expect(second.output.contains("posts: 20 of them\n"))
      #expect(second.output.hasSuffix("12 readers asked at once; the server was asked once\n"))
      let offline = try await Program.run(["--state", directory, "--api", absentServer])
      #expect(offline.status == 0 && offline.errors == "")
      #expect(offline.output.contains("posts: 20 of them\n"))
      #expect(
        offline.output.contains(
          "comments: 4 of them, as saved: there is no server to connect to\n"))
      #expect(offline.output.hasSuffix("12 readers asked at once; the answer came 0 times\n"))
    }
  }

  @Test("With an unusable directory it ends with 1 and one line")
  func unusableState() async throws {
    let ending = try await Program.run(["--state", "/dev/null"])
    #expect(ending.status == 1)
    #expect(ending.errors.hasPrefix("posts: The directory /dev/null cannot be used: "))
  }

  @Test("Without a server it ends with 1 and one line")
  func noServer() async throws {
    let ending = try await Program.run(["--api", absentServer])
    #expect(ending.status == 1)
    #expect(ending.errors == "posts: \(absentServer)/posts: there is no server to connect to\n")
    #expect(ending.output.contains("attempt 2 of 3"))
  }

  @Test("With bad arguments it ends with 2 and a usage line")
  func badArguments() async throws {
    let ending = try await Program.run(["--wrong"])
    #expect(ending.status == 2)
    #expect(ending.output == "")
    #expect(
      ending.errors == "posts: '--wrong' is not an argument of this program\n\(Arguments.usage)\n")
  }

  @Test("--help prints the help, and is not an error")
  func help() async throws {
    let ending = try await Program.run(["--help"])
    #expect(ending.status == 0)
    #expect(ending.output == Arguments.helpText + "\n")
    #expect(ending.errors == "")
  }

  @Test("It ends with 0 when its output is closed")
  func closedOutput() async throws {
    let ending = try await Program.run([], readsOutput: false)
    #expect(ending.status == 0)
    #expect(ending.errors == "")
  }
}

/// Calls a closure with a new directory, which is removed afterwards.
private func withDirectory(_ body: (String) async throws -> Void) async throws {
  let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
  defer { try? FileManager.default.removeItem(at: directory) }
  try await body(directory.path())
}

/// The program as a child process.
enum Program {
  struct Ending: Sendable {
    let status: Int32
    let output: String
    let errors: String
  }

  static func run(_ arguments: [String], readsOutput: Bool = true) async throws -> Ending {
    let process = Process()
    let (output, errors) = (Pipe(), Pipe())
    process.executableURL = try executable()
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = errors
    if !readsOutput { try output.fileHandleForReading.close() }
    // The output of the program fits into the pipes, so that they can be read when it has ended.
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<_, any Error>) in
      process.terminationHandler = { _ in continuation.resume() }
      do { try process.run() } catch { continuation.resume(throwing: error) }
    }
    // It has ended. Without this call, it and the source of its run loop retain each other.
    process.waitUntilExit()
    return Ending(
      status: process.terminationReason == .exit ? process.terminationStatus : -1,
      output: readsOutput ? try text(output) : "", errors: try text(errors))
  }

  private static func text(_ pipe: Pipe) throws -> String {
    String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
  }

  /// Returns the path of the program, which the build writes beside the tests.
  private static func executable() throws -> URL {
    let tests = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    let program = tests.deletingLastPathComponent().appending(path: "posts")
    try #require(FileManager.default.isExecutableFile(atPath: program.path()))
    return program
  }
}
