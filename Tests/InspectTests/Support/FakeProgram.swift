import Dispatch
import Foundation
import Glibc
import Testing

@testable import inspect

/// The error of a wait that takes a minute.
struct Stuck: Error {
  let description: String
}

/// A folder that is deleted at the end.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "inspect-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(
      atPath: path + "/swift-operation", withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// A program whose messages are sent by the test.
final class FakeProgram {
  let path: String
  private let listener: Descriptor
  private let runtime: TemporaryFolder

  /// - Parameter runtime: The value of `XDG_RUNTIME_DIR`.
  init(_ runtime: TemporaryFolder, program: String = "posts", pid: Int = 123) throws {
    self.runtime = runtime
    // An inspector that has ended is an error of `write`, and not the end of the tests.
    signal(SIGPIPE, SIG_IGN)
    path = "\(runtime.path)/swift-operation/\(program)-\(pid)-1.sock"
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    listener = Descriptor(owning: socket(AF_UNIX, kind, 0))
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener.number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0 && listen(listener.number, 8) == 0)
  }

  deinit { unlink(path) }

  /// Waits for an inspector to connect.
  func accept() throws -> Peer {
    try wait(listener, for: "a connection")
    let peer = Descriptor(owning: Glibc.accept(listener.number, nil, nil))
    // Another child process would keep the connection open.
    _ = fcntl(peer.number, F_SETFD, FD_CLOEXEC)
    return Peer(peer)
  }

  /// Waits for an inspector, and sends the first two messages.
  func serveBlog(_ stores: [Blog.Fields] = Blog.stores, pid: Int = 123) throws -> Peer {
    let peer = try accept()
    try peer.send(Blog.hello(pid: pid))
    try peer.send(Blog.snapshot(stores))
    return peer
  }

  /// An inspector at the other end of a connection.
  final class Peer {
    fileprivate let descriptor: Descriptor
    private var input = LineBuffer()

    init(_ descriptor: Descriptor) {
      self.descriptor = descriptor
    }

    func send(_ line: String) throws {
      guard StandardStreams.write(line + "\n", to: descriptor.number) else {
        throw Stuck(description: "\(line) is not read")
      }
    }

    /// Waits for the next command.
    func command() throws -> Command {
      while true {
        if let line = input.next() {
          return try JSONDecoder().decode(Command.self, from: Data(line))
        }
        try wait(descriptor, for: "a command")
        guard case .bytes(let bytes) = descriptor.read() else { throw Stuck(description: "closed") }
        input.append(bytes)
      }
    }

    /// Waits until the inspector closes the connection.
    func waitForEnd() throws {
      repeat { try wait(descriptor, for: "the end") } while descriptor.read() != .end
    }
  }

  struct Command: Equatable, Decodable {
    var id: Int
    var command: String
    var store: Int?
    var value: Bool?
  }
}

/// Waits until a descriptor can be read.
func wait(_ descriptor: Descriptor, for what: String) throws {
  var poll = Poll()
  poll.add(descriptor)
  poll.wait(60)
  guard poll.canRead(descriptor) else { throw Stuck(description: "waited a minute for \(what)") }
}

/// Runs a test on its own thread, because its calls block.
func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
  let executor = BlockingExecutor()
  try await withTaskExecutorPreference(executor) {
    dispatchPrecondition(condition: .onQueue(executor.queue))
    try body()
  }
}

private final class BlockingExecutor: TaskExecutor {
  let queue = DispatchQueue(label: "a test that blocks")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

extension FakeProgram.Peer {
  /// Sends a line again and again until it is not read for a second.
  ///
  /// - Returns: The number of lines sent.
  func sendUntilFull(_ line: String) throws -> Int {
    let bytes = Array((line + "\n").utf8)
    descriptor.setNonBlocking()
    var count = 0
    while count < 1_000 {
      var rest = bytes[...]
      while !rest.isEmpty {
        let written = try #require(descriptor.write(rest))
        rest = rest.dropFirst(written)
        guard written == 0 else { continue }
        var poll = Poll()
        poll.add(descriptor, write: true, read: false)
        poll.wait(1)
        if !poll.canWrite(descriptor) { return count }
      }
      count += 1
    }
    return count
  }
}
