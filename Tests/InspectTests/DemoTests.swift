import Foundation
import Testing

@testable import inspect

/// The inspector with a real program: the busy blog of the example `posts`.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DemoTests {
  @Test("--demo displays runs, and an invalidated store runs again") func demo() async throws {
    try await onThread {
      let runtime = try TemporaryFolder()
      let child = try TerminalChild(["--demo"], in: runtime)
      try child.wait { $0.lines[0].hasPrefix(" posts") && $0.lines[0].hasSuffix("● live") }
      try child.type("/pages/front\r")
      try child.wait { $0.lines[4].hasPrefix(">  pages/front") }
      try child.type("\r")
      try child.wait(for: "posts.FrontPageQuery")
      try child.wait(for: "retries")
      try child.wait(for: "Reads")
      try child.type("i")
      try child.wait { $0.lines[23] == " invalidate pages/front: done" }
      try child.wait { $0.text.contains("running") || $0.text.contains(" success    ") }
      try child.type("o")
      try child.wait { $0.lines[0].hasSuffix("as if offline") }
      try child.type("o")
      try child.wait { $0.lines[0].hasSuffix("● live") }
      try child.type("qq")
      #expect(try child.waitForEnd() == 0)
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: runtime.path + "/swift-operation") == []
      )
    }
  }
}
