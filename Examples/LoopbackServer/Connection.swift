import Foundation
import Glibc

/// Moves bytes over a connected socket that the `Listener` opens and closes.
///
/// The calls do not block, except in `wait`, which has a deadline for the whole transfer. So not
/// even a client that sends one byte at a time can block a thread.
struct Connection: Sendable {
  let descriptor: Int32

  /// Returns the bytes that arrive next, or none at the end of the stream.
  func receive(before deadline: ContinuousClock.Instant) throws -> [UInt8] {
    while try wait(for: POLLIN, until: deadline) {
      var result = 0
      var code: Int32 = 0
      let chunk = [UInt8](unsafeUninitializedCapacity: 16 * 1024) { buffer, count in
        result = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        code = errno
        count = max(result, 0)
      }
      if result >= 0 { return chunk }
      try rethrowUnlessTemporary(code, call: "recv")
    }
    throw HTTPError(408, "The request did not arrive in time.")
  }

  /// Sends all the bytes, or throws if the client does not receive them in time.
  func send(_ data: Data, before deadline: ContinuousClock.Instant) throws {
    // Without MSG_NOSIGNAL, a client that has disconnected would end the process with SIGPIPE.
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    var rest = data[...]
    while true {
      // Before the wait: a response that the socket accepts at once needs no wait.
      let sent = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
      if sent >= 0 {
        rest = rest.dropFirst(sent)
      } else {
        try rethrowUnlessTemporary(errno, call: "send")
      }
      if rest.isEmpty { return }
      guard try wait(for: POLLOUT, until: deadline) else {
        throw ServerError.system(call: "send", code: ETIMEDOUT)
      }
    }
  }

  /// Waits for a time, or throws as soon as the connection is cut, so that `stop()` is prompt.
  func pause(for duration: Duration) throws {
    let isCut = try wait(for: 0, until: .now + duration)
    if isCut { throw ServerError.system(call: "poll", code: ECONNRESET) }
  }

  /// Ends the response, and reads the rest of the client's data.
  ///
  /// Closing a socket with unread bytes resets the connection, which can destroy a response that
  /// the client has not read yet.
  func finishAndDrain(before deadline: ContinuousClock.Instant) throws {
    shutdown(descriptor, Int32(SHUT_WR))
    while try !receive(before: deadline).isEmpty {}
  }

  /// Returns true when the socket is ready or broken, and false at the deadline.
  private func wait(for events: Int32, until deadline: ContinuousClock.Instant) throws -> Bool {
    while true {
      // Checked even when the socket is ready, or a client that never stops would pass for ever.
      let remaining = deadline - .now
      guard remaining > .zero else { return false }
      // Rounded up, so as not to spin through the last millisecond.
      let milliseconds = Int32(min((remaining / .milliseconds(1)).rounded(.up), 1_000_000))
      var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
      let count = poll(&entry, 1, milliseconds)
      if count > 0 { return true }
      if count < 0 { try rethrowUnlessTemporary(errno, call: "poll") }
    }
  }

  private func rethrowUnlessTemporary(_ code: Int32, call: String) throws {
    guard [EINTR, EAGAIN, EWOULDBLOCK].contains(code) else {
      throw ServerError.system(call: call, code: code)
    }
  }
}
