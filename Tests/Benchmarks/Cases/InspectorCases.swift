import Foundation
import Glibc
import Operation

extension Catalogue {
  static let inspectors: [Benchmark] = [
    Benchmark(
      name: "fetch, served", floor: "the same, not served", sizes: [10_000], unit: "stores",
      limit: 1.1
    ) { size in
      Pair(
        subject: try Inspected(size, isServed: true).fetches(),
        floor: try Inspected(size).fetches())
    },
    Benchmark(
      name: "fetch, inspected", floor: "the same, not served", sizes: [10_000], unit: "stores",
      limit: 1.2
    ) { size in
      Pair(
        subject: try Inspected(size, isServed: true, hasPeer: true).fetches(),
        floor: try Inspected(size).fetches())
    },
  ]
}

/// A client with stores, and a program that inspects it.
private struct Inspected: Sendable {
  private let client: OperationClient
  private let stores: [OperationStore<QueryState<Int, any Error>>]
  private let inspector: OperationInspector?
  private let peer: Peer?

  init(_ size: Int, isServed: Bool = false, hasPeer: Bool = false) throws {
    client = OperationClient()
    let client = client
    stores = Fixtures.items(size).map { client.store(for: $0) }
    inspector = isServed ? try client.serveInspector() : nil
    peer = hasPeer ? try inspector.map { try Peer(at: $0.path) } : nil
  }

  /// Fetches one store after the other, in an order in which neighbours are far apart.
  func fetches() -> Work {
    .loop(keeping: self) { index in
      blackHole(try await stores[index * 7_919 % stores.count].fetch())
    }
  }
}

/// A program that inspects a client. It reads all messages on its own thread.
private final class Peer: Sendable {
  private let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)

  /// Connects, and waits for the first bytes.
  init(at path: String) throws {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    var byte: UInt8 = 0
    guard result == 0, recv(descriptor, &byte, 1, 0) == 1 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    Thread.detachNewThread { [descriptor] in
      var bytes = [UInt8](repeating: 0, count: 1 << 16)
      while recv(descriptor, &bytes, bytes.count, 0) > 0 {}
    }
  }

  deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
