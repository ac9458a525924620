import FoundationEssentials
import Glibc

/// A file descriptor that is closed when it is released.
final class Descriptor {
  let number: Int32

  init(owning number: Int32) { self.number = number }

  deinit { close(number) }

  /// Creates two connected sockets, which no child process inherits.
  static func pair() throws(InspectError) -> (Descriptor, Descriptor) {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw .system("socketpair") }
    return (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
  }

  func setNonBlocking() { _ = fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK) }

  enum Input: Equatable {
    case bytes([UInt8])
    /// There is nothing to read now.
    case nothing
    /// There is nothing to read any more.
    case end
  }

  /// Reads what is there, at most `limit` bytes.
  func read(limit: Int = 65_536) -> Input {
    var count = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
      count = Glibc.read(number, buffer.baseAddress, limit)
      initialized = max(count, 0)
    }
    if count > 0 { return .bytes(bytes) }
    return count < 0 && [EAGAIN, EINTR].contains(errno) ? .nothing : .end
  }

  /// Writes a part of the bytes, and returns their number, or `nil` if nobody can read them.
  func write(_ bytes: some Collection<UInt8>) -> Int? {
    let bytes = Array(bytes)
    let count = Glibc.write(number, bytes, bytes.count)
    if count >= 0 { return count }
    return [EAGAIN, EINTR].contains(errno) ? 0 : nil
  }
}

/// An error with the text that the user sees.
struct InspectError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// Creates the error of a system call that has just failed.
  static func system(_ action: String) -> Self {
    Self("\(action): \(String(cString: strerror(errno)))")
  }
}

/// What a loop waits for.
struct Poll {
  private var entries: [pollfd] = []

  mutating func add(_ descriptor: Descriptor, write: Bool = false, read: Bool = true) {
    let events = (read ? Int16(POLLIN) : 0) | (write ? Int16(POLLOUT) : 0)
    entries.append(pollfd(fd: descriptor.number, events: events, revents: 0))
  }

  /// Waits until a descriptor is ready, or for so many seconds.
  mutating func wait(_ seconds: Double?) {
    let milliseconds = seconds.map { Int32(($0 * 1_000).rounded(.up)) } ?? -1
    if poll(&entries, nfds_t(entries.count), milliseconds) < 0 {
      for index in entries.indices { entries[index].revents = 0 }
    }
  }

  func canRead(_ descriptor: Descriptor) -> Bool {
    has(descriptor, Int16(POLLIN | POLLHUP | POLLERR | POLLNVAL))
  }

  func canWrite(_ descriptor: Descriptor) -> Bool {
    has(descriptor, Int16(POLLOUT | POLLERR | POLLHUP))
  }

  private func has(_ descriptor: Descriptor, _ events: Int16) -> Bool {
    entries.contains { $0.fd == descriptor.number && $0.revents & events != 0 }
  }
}

/// Points of time.
enum Time {
  /// The time in seconds since 1970.
  static var now: Double { Date().timeIntervalSince1970 }
  /// The time in seconds since some start, which no one sets.
  static var monotonic: Double { ContinuousClock().systemEpoch.duration(to: .now) / .seconds(1) }
}
