import Foundation
import Glibc
import Synchronization
import Testing

@testable import Operation

/// The file of the socket, its permissions, and its end.
@Suite("The socket of an inspector", .timeLimit(.minutes(5))) struct InspectorSocketTests {
  private let directory = SocketDirectory()
  private let client = OperationClient()

  private var isListening: Bool { SocketDirectory.mode(of: directory.socket) != nil }

  @Test("Each client has a default socket of its own in a private directory, for its user only")
  func defaultPath() async throws {
    let inspector = try client.serveInspector()
    let other = OperationClient()
    let second = try other.serveInspector()
    #expect(inspector.path != second.path && inspector.path.hasSuffix(".sock"))
    #expect(inspector.path.contains("-\(getpid())-"))
    #expect(SocketDirectory.mode(of: inspector.path) == S_IFSOCK | 0o600)
    let parent = inspector.path.split(separator: "/").dropLast().joined(separator: "/")
    #expect(SocketDirectory.mode(of: "/" + parent) == S_IFDIR | 0o700)
    let peer = try InspectingPeer(at: inspector.path)
    _ = try await peer.line("hello")
    inspector.cancel()
    second.cancel()
    #expect(SocketDirectory.mode(of: inspector.path) == nil)
    #expect(SocketDirectory.mode(of: second.path) == nil)
  }

  @Test("The directory is in that of the session, or else private in the temporary directory")
  func directoryOfSockets() throws {
    let base = directory.path
    #expect(try InspectorSocket.directory(["XDG_RUNTIME_DIR": base]) == base + "/swift-operation")
    let temporary = try InspectorSocket.directory(["TMPDIR": base])
    #expect(temporary == base + "/swift-operation-\(geteuid())")
    #expect(SocketDirectory.mode(of: temporary) == S_IFDIR | 0o700)
    chmod(temporary, 0o755)
    #expect(throws: OperationInspectorError.unsafeDirectory(path: temporary)) {
      try InspectorSocket.directory(["TMPDIR": base])
    }
    for relative in ["", "sockets"] {
      let path = try InspectorSocket.directory(["TMPDIR": relative])
      #expect(path == "/tmp/swift-operation-\(geteuid())")
    }
    rmdir(temporary)
    symlink(base + "/swift-operation", temporary)
    #expect(throws: OperationInspectorError.unsafeDirectory(path: temporary)) {
      try InspectorSocket.directory(["TMPDIR": base])
    }
    #expect(throws: OperationInspectorError.system(path: base + "/a/swift-operation", code: ENOENT))
    {
      try InspectorSocket.directory(["XDG_RUNTIME_DIR": base + "/a"])
    }
  }

  @Test("A socket that no program serves is replaced") func stale() async throws {
    try leaveSocket(at: directory.socket)
    let inspector = try client.serveInspector(at: directory.socket)
    _ = try await InspectingPeer(at: inspector.path).line("hello")
  }

  @Test("Of two programs that replace one socket at the same time, one serves, and the other fails")
  func replacement() throws {
    for round in 0..<400 {
      let path = directory.path + "/\(round)"
      try leaveSocket(at: path)
      let arrived = Atomic(0)
      let served = EventLog<InspectorSocket?>()
      let threads = try (0..<2).map { _ in
        try PosixThread {
          arrived.add(1, ordering: .relaxed)
          while arrived.load(ordering: .relaxed) < 2 {}
          served.append(try? InspectorSocket(at: path))
        }
      }
      for thread in threads { thread.join() }
      let sockets = served.values.compactMap { $0 }
      try #require(sockets.count == 1, "round \(round)")
      sockets[0].remove()
    }
  }

  @Test("A folder that another program keeps locked does not stop a program from serving")
  func lockedFolder() async throws {
    let folder = FileDescriptor(open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    #expect(flock(folder.number, LOCK_EX) == 0)
    let inspector = try client.serveInspector(at: directory.socket)
    _ = try await InspectingPeer(at: inspector.path).line("hello")
    #expect(flock(folder.number, LOCK_UN) == 0)
  }

  /// Leaves a socket at a path, as a program that was killed does.
  private func leaveSocket(at path: String) throws {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0)
  }

  @Test("The name of a program in the path of a socket is short, and has no spaces") func name() {
    #expect(InspectorServer.shortened("my daemon") == "my-daemon")
    let long = InspectorServer.shortened(String(repeating: "語", count: 32))
    #expect(long.hasPrefix(String(repeating: "語", count: 13)) && long.utf8.count <= 42)
  }

  @Test("A socket that a program serves, another file and a bad path are refused") func refusals()
    throws
  {
    let inspector = try client.serveInspector(at: directory.socket)
    let other = OperationClient()
    #expect(throws: OperationInspectorError.occupied(path: directory.socket)) {
      try other.serveInspector(at: directory.socket)
    }
    let file = directory.path + "/file"
    try Data("text".utf8).write(to: URL(filePath: file))
    #expect(throws: OperationInspectorError.foreignFile(path: file)) {
      try other.serveInspector(at: file)
    }
    #expect(FileManager.default.contents(atPath: file) == Data("text".utf8))
    let long = directory.path + "/" + String(repeating: "a", count: 100)
    #expect(throws: OperationInspectorError.pathTooLong(path: long, limit: 107)) {
      try other.serveInspector(at: long)
    }
    for path in ["", "a\0b"] {
      #expect(throws: OperationInspectorError.system(path: path, code: EINVAL)) {
        try other.serveInspector(at: path)
      }
    }
    withExtendedLifetime(inspector) {}
  }

  @Test("A length of descriptions below one is reported, and one is used") func badLimit()
    async throws
  {
    client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 }).currentValue = 23
    let (issues, inspector) = try await issues {
      try client.serveInspector(at: directory.socket, valueLimit: 0)
    }
    #expect(issues.map(\.kind) == [.invalidValue])
    let peer = try InspectingPeer(at: inspector.path)
    let id = try await peer.store("number").id
    #expect(try await peer.command(1, #""command":"watch","store":\#(id)"#).ok == true)
    #expect(try await peer.line("detail").store?.value == "2")
  }

  @Test("A client has one inspector at a time, and none after its shutdown") func oneInspector()
    async throws
  {
    let inspector = try client.serveInspector(at: directory.socket)
    #expect(throws: OperationInspectorError.alreadyServed) {
      try client.serveInspector(at: directory.socket + "2")
    }
    #expect(SocketDirectory.mode(of: directory.socket + "2") == nil && isListening)
    inspector.cancel()
    let second = try client.serveInspector(at: directory.socket)
    inspector.cancel()
    #expect(isListening)
    await client.shutdown(within: .zero)
    #expect(!isListening)
    #expect(throws: OperationInspectorError.clientShutDown) {
      try client.serveInspector(at: directory.socket)
    }
    withExtendedLifetime(second) {}
  }

  @Test("The end of the inspector or its client and a shutdown end connections with a reason")
  func ends() async throws {
    var client: OperationClient? = OperationClient()
    var inspector = try client?.serveInspector(at: directory.socket)
    var peer = try InspectingPeer(at: directory.socket)
    _ = try await peer.line("snapshot")
    inspector = nil
    #expect(await peer.end() == "The program has ended the inspector." && !isListening)

    inspector = try client?.serveInspector(at: directory.socket)
    peer = try InspectingPeer(at: directory.socket)
    _ = try await peer.line("snapshot")
    await client?.shutdown(within: .zero)
    #expect(await peer.end() == "The client has ended." && !isListening)

    client = OperationClient()
    let store = client?.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 })
    inspector = try client?.serveInspector(at: directory.socket)
    peer = try InspectingPeer(at: directory.socket)
    _ = try await peer.line("snapshot")
    client = nil
    #expect(await peer.end() == "The client has ended." && !isListening)
    withExtendedLifetime((inspector, store)) {}
  }

  @Test("An inspector works after its socket was deleted, and does not remove the new one")
  func deletion() async throws {
    let inspector = try client.serveInspector(at: directory.socket)
    let peer = try InspectingPeer(at: directory.socket)
    _ = try await peer.line("snapshot")
    unlink(directory.socket)
    _ = client.store(for: Query<Int, any Error>(path: ["number"]) { _ in 1 })
    try await peer.store("number")
    let other = OperationClient()
    let second = try other.serveInspector(at: directory.socket)
    inspector.cancel()
    _ = try await InspectingPeer(at: second.path).line("hello")
  }

  @Test("An inspector without descriptors throws, and one that cannot wait any more ends")
  func limits() async throws {
    let path = directory.socket
    let lines = try await SignalChildProcess.run(["limits", path]) { try $0.lines(3) }
    #expect(lines == ["\(path): Too many open files.", "removed: true", "served again: true"])
  }

  @Test("A peer that cannot be accepted is accepted later, and others are served meanwhile")
  func acceptedLater() async throws {
    let options = InspectorServer.Options(
      describer: InspectorDescriber(limit: 100, redacting: nil))
    let server = try InspectorServer(at: directory.socket, options, started: Date())
    try server.start(for: client)
    let peer = try InspectingPeer(at: directory.socket)
    _ = try await peer.line("snapshot")
    // The listener is a file that is no socket for a while.
    let listener = server.socket.listener.number
    let (saved, file) = (dup(listener), open("/dev/null", O_RDONLY))
    #expect(dup2(file, listener) == listener)
    close(file)
    let late = try InspectingPeer(at: directory.socket)
    // The turn of the first command, in which the listener is readable, ends before the second one.
    for id in 1...2 { #expect(try await peer.command(id, #""command":"unwatch""#).ok == true) }
    #expect(late.lines.count == 0)
    #expect(dup2(saved, listener) == listener)
    close(saved)
    _ = try await late.line("snapshot")
    server.cancel(because: "The test ends.")
    #expect(await late.end() == "The test ends.")
  }

  @Test("A peer of another user is refused") func otherUser() async throws {
    var options = InspectorServer.Options(
      describer: InspectorDescriber(limit: 100, redacting: nil))
    options.user = geteuid() + 1
    let inspector = try client.serveInspector(at: directory.socket, options)
    let peer = try InspectingPeer(at: directory.socket)
    #expect(await peer.end() == "The program belongs to another user.")
    #expect(peer.lines.all.compactMap { $0 }.map(\.type) == ["bye"])
    #expect(!client.hub.events.hasReader)
    withExtendedLifetime(inspector) {}
  }

  @Test("A socket on which a program listens is not replaced while others wait there")
  func fullQueue() throws {
    let listener = try InspectorSocket(at: directory.socket).listener
    listen(listener.number, 0)
    let peer = try InspectingPeer(at: directory.socket, reads: false)
    #expect(throws: OperationInspectorError.occupied(path: directory.socket)) {
      try client.serveInspector(at: directory.socket)
    }
    withExtendedLifetime((listener, peer)) {}
  }
}
