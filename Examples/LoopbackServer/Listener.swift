import Dispatch
import Foundation
import Glibc
import Synchronization

/// Accepts connections on one thread, and serves each of them on its own thread.
///
/// Threads, and not a concurrent queue, because the handlers block, and Dispatch adds threads for
/// blocked ones only slowly.
final class Listener: Sendable {
  let port: UInt16

  private struct Sockets {
    var open: Set<Int32> = []
    var isStopped = false
  }

  private let serve: @Sendable (Connection) -> Void
  private let sockets = Mutex(Sockets())
  private let threads = DispatchGroup()

  init(serve: @escaping @Sendable (Connection) -> Void) throws {
    let descriptor = try Self.makeSocket()
    do {
      port = try Self.listen(on: descriptor)
    } catch {
      close(descriptor)
      throw error
    }
    self.serve = serve
    runThread(owning: descriptor) { try? self.acceptConnections(on: descriptor) }
  }

  /// Shuts down all sockets, and waits until their threads have closed them.
  func stop() {
    sockets.withLock { sockets in
      sockets.isStopped = true
      // This resumes a thread that waits on the socket. Closing the socket here would not.
      for descriptor in sockets.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
    threads.wait()
  }

  /// Runs a thread that owns a descriptor and closes it in the end.
  private func runThread(owning descriptor: Int32, _ body: @escaping @Sendable () -> Void) {
    let isAdmitted = sockets.withLock { sockets in
      if !sockets.isStopped { sockets.open.insert(descriptor) }
      return !sockets.isStopped
    }
    guard isAdmitted else {
      close(descriptor)
      return
    }
    threads.enter()
    Thread.detachNewThread { [self] in
      body()
      // Removed first: after the close, the number may be reused for another socket.
      _ = sockets.withLock { $0.open.remove(descriptor) }
      close(descriptor)
      threads.leave()
    }
  }

  private func acceptConnections(on listener: Int32) throws {
    while true {
      let descriptor = accept(listener, nil, nil)
      if descriptor >= 0 {
        // Swift does not import `accept4`, which would do this in one step.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        runThread(owning: descriptor) { self.serve(Connection(descriptor: descriptor)) }
        continue
      }
      switch errno {
      case EINTR, ECONNABORTED:
        continue
      case EMFILE, ENFILE, ENOBUFS, ENOMEM:
        // The connection remains in the queue until others have ended. Do not spin meanwhile.
        usleep(10_000)
      case let code:
        throw ServerError.system(call: "accept", code: code)
      }
    }
  }
}

extension Listener {
  private static func makeSocket() throws -> Int32 {
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    return try check("socket", socket(AF_INET, type, 0))
  }

  /// Binds the socket to a free port of the loopback interface, and returns that port.
  private static func listen(on descriptor: Int32) throws -> UInt16 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian  // 127.0.0.1
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    try withUnsafeMutablePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        try check("bind", bind(descriptor, address, size))
        try check("listen", Glibc.listen(descriptor, SOMAXCONN))
        try check("getsockname", getsockname(descriptor, address, &size))
      }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  @discardableResult
  private static func check(_ call: String, _ result: Int32) throws -> Int32 {
    guard result >= 0 else { throw ServerError.system(call: call, code: errno) }
    return result
  }
}
