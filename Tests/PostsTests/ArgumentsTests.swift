import Foundation
import Testing

@testable import posts

@Suite struct ArgumentsTests {
  @Test("Without arguments the program reads its own blog")
  func none() throws {
    #expect(try Arguments([]) == .read(api: nil))
  }

  @Test("--api names another server", arguments: ["http://127.0.0.1:80", "https://blog.test/api/"])
  func api(text: String) throws {
    #expect(try Arguments(["--api", text]) == .read(api: URL(string: text)))
  }

  @Test("--offline-demo has its own blog")
  func offlineDemo() throws {
    #expect(try Arguments(["--offline-demo"]) == .offlineDemo())
    #expect(throws: BadArguments("--offline-demo has a server of its own")) {
      try Arguments(["--api", "http://a", "--offline-demo"])
    }
  }

  @Test("--busy has its own blog")
  func busy() throws {
    #expect(try Arguments(["--busy"]) == .busy)
    for others in [["--api", "http://a"], ["--offline-demo"], ["--state", "d"]] {
      #expect(throws: BadArguments("--busy has a server of its own, and keeps nothing")) {
        try Arguments(others + ["--busy"])
      }
    }
  }

  @Test("--state names a directory, for reading and for the demo")
  func state() throws {
    #expect(try Arguments(["--state", "d"]) == .read(api: nil, state: "d"))
    #expect(try Arguments(["--state", "d", "--offline-demo"]) == .offlineDemo(state: "d"))
    let api = try #require(URL(string: "http://a"))
    #expect(
      try Arguments(["--part", "send", "http://a", "d"]) == .part(.send, api: api, state: "d"))
  }

  @Test("--help overrides later arguments", arguments: [["--help"], ["-h"], ["--help", "x"]])
  func help(arguments: [String]) throws {
    #expect(try Arguments(arguments) == .help)
  }

  @Test(
    "The error of bad arguments describes them",
    arguments: [
      (["--api"], "--api needs a URL"),
      (["--api", "http://a", "--api", "http://b"], "--api is there twice"),
      (["--state"], "--state needs a directory"),
      (["--state", ""], "--state needs a directory"),
      (["--state", "a", "--state", "b"], "--state is there twice"),
      (["--part", "read"], "--part needs 'write' or 'send', a URL and a directory"),
      (["posts"], "'posts' is not an argument of this program"),
      (["--api", "http://a", "-v"], "'-v' is not an argument of this program"),
      ([""], "'' is not an argument of this program"),
    ])
  func bad(arguments: [String], description: String) {
    #expect(throws: BadArguments(description)) { try Arguments(arguments) }
  }

  @Test(
    "A URL needs http or https, and a host",
    arguments: ["", "127.0.0.1:80", "ftp://a", "file:///tmp", "http://", "http:///a", "--help"])
  func badURL(text: String) {
    #expect(throws: BadArguments("'\(text)' is not an http or https URL")) {
      try Arguments(["--api", text])
    }
  }
}
