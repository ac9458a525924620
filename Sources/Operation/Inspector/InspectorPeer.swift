import Glibc

/// A peer of an inspector. It belongs to the thread of the inspector.
final class InspectorPeer {
  private let descriptor: FileDescriptor
  var lines = InspectorLines()
  var backlog = InspectorBacklog()
  var output = InspectorOutput()
  /// The counts of the client when the peer came.
  var baseCounts: OperationStatistics.Counts
  /// The store whose detail the peer gets.
  var watched: Int?
  var wasOffline = false
  var isGone = false

  init(_ descriptor: FileDescriptor, baseCounts: OperationStatistics.Counts) {
    self.descriptor = descriptor
    self.baseCounts = baseCounts
  }

  /// A peer is read only when it has taken what it was sent. So it cannot fill the memory with replies.
  var polled: pollfd {
    pollfd(
      fd: descriptor.number, events: Int16(output.isEmpty ? POLLIN : POLLOUT), revents: 0)
  }

  /// Reads what has arrived, up to a limit, and returns the lines.
  func read() -> [[UInt8]] {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = recv(descriptor.number, &bytes, bytes.count, 0)
    if count > 0 { return lines.append(bytes[..<count]) }
    if count == 0 || (errno != EAGAIN && errno != EINTR) { isGone = true }
    return []
  }

  func send(_ message: some Encodable) {
    output.append(message)
    flush()
  }

  func flush() { if !output.write(to: descriptor) { isGone = true } }

  /// Sends a last message, if the peer takes it at once, and ends the connection.
  func end(_ reason: String) {
    if !isGone { send(InspectorBye(reason: reason)) }
    isGone = true
  }
}
