import Foundation
import Glibc
import Testing

@testable import inspect

/// A headless Chromium, driven by its DevTools protocol over two pipes.
final class Browser {
  static let path: String? = ["chromium", "chromium-browser", "google-chrome"]
    .map { "/usr/bin/\($0)" }.first { access($0, X_OK) == 0 }

  private let child: ProgramChild
  private let commands: Descriptor
  private let answers: Descriptor
  private let profile: TemporaryFolder
  private var buffer: [UInt8] = []
  private var lastID = 0
  private var session: String?

  init(columns width: Int = 1280, rows height: Int = 800) throws {
    profile = try TemporaryFolder()
    let (commandEnds, answerEnds) = (try Descriptor.pair(), try Descriptor.pair())
    commands = commandEnds.0
    answers = answerEnds.0
    var words = [
      try #require(Self.path), "--headless=new", "--remote-debugging-pipe", "--disable-gpu",
      "--no-first-run", "--user-data-dir=\(profile.path)", "--window-size=\(width),\(height)",
      "--disable-dev-shm-usage", "--hide-scrollbars",
    ]
    // Chromium's sandbox does not start for root.
    if geteuid() == 0 { words.append("--no-sandbox") }
    child = try ProgramChild(
      words, descriptors: [3: commandEnds.1, 4: answerEnds.1])
  }

  deinit {
    // A signal would end only one of its processes. The others write to the profile until they end,
    // and then the pipe is closed.
    let text = #"{"id":0,"method":"Browser.close"}"# + "\0"
    guard StandardStreams.write(text, to: commands.number) else { return }
    let deadline = Time.monotonic + 10
    while answers.read() != .end, Time.monotonic < deadline {
      guard (try? InspectTests.wait(answers, for: "the browser's end")) != nil else { return }
    }
  }

  /// Opens a page, and waits until it is loaded.
  func open(_ address: String) throws {
    if session == nil {
      let target = try call("Target.createTarget", ["url": "about:blank"])
      let id = try #require(target["targetId"] as? String)
      let answer = try call("Target.attachToTarget", ["targetId": id, "flatten": true])
      session = try #require(answer["sessionId"] as? String)
    }
    let answer = try call("Page.navigate", ["url": address])
    #expect(answer["errorText"] == nil)
  }

  /// Returns the value of an expression in the page, as text.
  func value(_ expression: String) throws -> String {
    let answer = try evaluate("String(\(expression))")
    return try #require(answer)
  }

  /// Waits until an expression in the page is true.
  func wait(until expression: String) throws {
    let code = """
      new Promise((resolve) => {
        const end = Date.now() + 20000;
        const check = () => {
          let isTrue = false;
          try { isTrue = Boolean(\(expression)); } catch {}
          if (isTrue || Date.now() > end) resolve(String(isTrue)); else setTimeout(check, 10);
        };
        check();
      })
      """
    if try evaluate(code) != "true" {
      let text = try value("document.body ? document.body.innerText : ''")
      throw Stuck(description: "waited for \(expression); the page is:\n\(text)")
    }
  }

  /// Presses a key that has a text of one character, or a named one.
  func press(_ key: String) throws {
    var fields: [String: Any] = ["type": "keyDown", "key": key]
    if key.count == 1 { fields["text"] = key }
    _ = try call("Input.dispatchKeyEvent", fields)
    fields["type"] = "keyUp"
    _ = try call("Input.dispatchKeyEvent", fields)
  }

  func type(_ text: String) throws {
    for character in text { try press(String(character)) }
  }

  /// Changes the size of the page, and whether it is dark.
  func show(width: Int, height: Int, isDark: Bool, scale: Double = 1) throws {
    _ = try call(
      "Emulation.setDeviceMetricsOverride",
      ["width": width, "height": height, "deviceScaleFactor": scale, "mobile": false])
    let scheme = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
    _ = try call("Emulation.setEmulatedMedia", ["features": [scheme]])
  }

  /// Returns an image of the page as PNG.
  func picture() throws -> Data {
    let answer = try call("Page.captureScreenshot", ["format": "png"])
    return try #require((answer["data"] as? String).flatMap { Data(base64Encoded: $0) })
  }

  private func evaluate(_ expression: String) throws -> String? {
    let answer = try call(
      "Runtime.evaluate",
      ["expression": expression, "awaitPromise": true, "returnByValue": true])
    if let problem = answer["exceptionDetails"] {
      throw Stuck(description: "\(expression): \(problem)")
    }
    return (answer["result"] as? [String: Any])?["value"] as? String
  }

  private func call(_ method: String, _ parameters: [String: Any]) throws -> [String: Any] {
    lastID += 1
    var fields: [String: Any] = ["id": lastID, "method": method, "params": parameters]
    fields["sessionId"] = session
    let data = try JSONSerialization.data(withJSONObject: fields)
    let text = String(decoding: data, as: UTF8.self) + "\0"
    try #require(StandardStreams.write(text, to: commands.number))
    while true {
      let message = try nextMessage()
      guard message["id"] as? Int == lastID else { continue }
      if let error = message["error"] { throw Stuck(description: "\(method): \(error)") }
      return message["result"] as? [String: Any] ?? [:]
    }
  }

  private func nextMessage() throws -> [String: Any] {
    while true {
      if let end = buffer.firstIndex(of: 0) {
        let data = Data(buffer[..<end])
        buffer.removeSubrange(...end)
        return try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
      }
      try InspectTests.wait(answers, for: "the browser")
      guard case .bytes(let bytes) = answers.read() else {
        throw Stuck(description: "the browser has ended")
      }
      buffer += bytes
    }
  }
}
