import Dispatch
import Synchronization

/// Waits for what a socket has to read.
final class NetlinkWatch: Sendable {
  /// The lock guards the source until it is cancelled.
  private let source: Mutex<(any DispatchSourceRead)?>

  /// Calls `handler` on `queue` whenever there is something to read.
  init(_ socket: NetlinkSocket, on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void)
  {
    let source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor, queue: queue)
    source.setEventHandler(handler: handler)
    // The descriptor has to stay open until the source is done with it.
    source.setCancelHandler { withExtendedLifetime(socket) {} }
    source.activate()
    self.source = Mutex(source)
  }

  /// Ends the calls, and lets go of the socket.
  func end() {
    let source = source.withLock { source in
      let taken = source
      source = nil
      return taken
    }
    source?.cancel()
  }
}
