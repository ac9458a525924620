import FoundationEssentials
import Glibc
import ReactiveStreams

/// A peer of an inspector, and the bytes that it has not taken yet. It belongs to the thread of the
/// inspector.
final class InspectorPeer {
  private let descriptor: FileDescriptor
  private(set) var lines = InspectorLines()
  /// The lines that were read, and not performed.
  var commands = FIFO<[UInt8]>()
  var backlog = InspectorBacklog()
  private var output: [UInt8] = []
  private var written = 0
  /// The counts of the client since the peer came.
  var counts = OperationStatistics.Counts()
  /// The store whose detail the peer gets.
  var watched: Int?
  var wasOffline = false
  var isGone = false

  init(_ descriptor: FileDescriptor) { self.descriptor = descriptor }

  /// Whether the peer has taken all that it was sent.
  var hasTakenAll: Bool { written == output.count }

  /// Whether a command can be performed: the peer has taken all replies to those before. So it cannot fill
  /// the memory with replies. What a peer sends before it closes the connection is performed as well.
  var hasCommand: Bool { hasTakenAll && !commands.isEmpty }

  /// A peer is read only when its commands were performed, and it has taken the replies.
  var polled: pollfd {
    let events = !hasTakenAll ? POLLOUT : commands.isEmpty ? POLLIN : 0
    return pollfd(fd: descriptor.number, events: Int16(events), revents: 0)
  }

  /// Reads what has arrived, up to a limit.
  func read() {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = recv(descriptor.number, &bytes, bytes.count, 0)
    if count > 0 {
      for line in lines.append(bytes[..<count]) { commands.append(line) }
    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
      isGone = true
    }
  }

  /// Notes that the peer gets stores. Returns how many of their results it has missed.
  func noteSent(_ stores: [InspectedStore]) -> Int {
    stores.reduce(0) { $0 + backlog.noteSent($1.facts.id, resultCount: $1.resultCount) }
  }

  func send(_ message: some Encodable) {
    append(message)
    flush()
  }

  /// Adds a message to what is sent next.
  func append(_ message: some Encodable) {
    // No message has a number that JSON cannot contain, except for a date out of all range.
    let encoder = JSONEncoder()
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    encoder.outputFormatting = .withoutEscapingSlashes
    guard let encoded = try? encoder.encode(message) else { return }
    output += encoded
    output.append(UInt8(ascii: "\n"))
  }

  /// Writes as much as the peer takes without blocking.
  func flush() {
    while !hasTakenAll {
      let count = output[written...].withUnsafeBytes {
        Glibc.send(descriptor.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      if count < 0 {
        if errno == EAGAIN { return }
        isGone = true
        break
      }
      written += count
    }
    (output, written) = ([], 0)
  }

  /// Sends a last message, if the peer takes it at once, and ends the connection.
  func end(_ reason: String) {
    if !isGone { send(InspectorBye(reason: reason)) }
    isGone = true
    commands = FIFO()
  }
}
