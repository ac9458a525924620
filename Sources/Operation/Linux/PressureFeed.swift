import Dispatch
import FoundationEssentials
import Glibc
import ReactiveStreams
import Synchronization

/// Asks the kernel to be told of memory pressure, and waits for that on a thread.
final class PressureFeed: Sendable {
  private static let queue = DispatchQueue(label: "swift-operation.memory")

  private let file: String?
  private let hasReported = Atomic(false)

  init(file: String?) {
    self.file = file
  }

  /// Tells of pressure until the subscription is cancelled.
  func begin(_ tell: @escaping @Sendable (MemoryPressure?) -> Void) -> OperationSubscription {
    var problem = ""
    for file in file.map({ [$0] }) ?? Self.files() {
      do throws(SystemError) {
        return try Self.watch(file, tell)
      } catch {
        problem += " \(file): \(String(cString: strerror(error.code)))."
      }
    }
    if !hasReported.exchange(true, ordering: .relaxed) {
      OperationIssue(
        kind: .unavailableSource,
        message: "The kernel tells this process of no memory pressure; nobody is told.\(problem)"
      ).report()
    }
    return .empty
  }

  private static func watch(
    _ file: String, _ tell: @escaping @Sendable (MemoryPressure?) -> Void
  ) throws(SystemError) -> OperationSubscription {
    let triggers = try PressureTriggers(file: file)
    // On a queue: the thread is waited for by those who cancel, who may hold up a handler.
    let thread = WatchThread {
      triggers.wait { pressure in queue.async { tell(pressure) } }
    }
    guard let thread else {
      triggers.close()
      throw SystemError(code: EAGAIN)
    }
    return OperationSubscription {
      triggers.endWait()
      thread.join()
      triggers.close()
    }
  }

  private static func files() -> [String] {
    let group = try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8)
    let mounts = try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
    let directory = controlGroup(in: group ?? "", mounts: mounts ?? "")
    return (directory.map { ["\($0)/memory.pressure"] } ?? []) + ["/proc/pressure/memory"]
  }

  /// The directory of a process's control group, by the texts of `/proc/self/cgroup` and
  /// `/proc/self/mountinfo`; `nil` where there is none of version 2, or none that can be seen.
  static func controlGroup(in groups: String, mounts: String) -> String? {
    guard
      let entry = groups.split(separator: "\n").first(where: { $0.hasPrefix("0::/") }),
      case let group = entry.dropFirst(3), !group.hasPrefix("/..")
    else { return nil }
    for line in mounts.split(separator: "\n") {
      guard let separator = line.firstRange(of: " - cgroup2 ") else { continue }
      let fields = line[..<separator.lowerBound].split(separator: " ")
      guard fields.count > 4 else { continue }
      // A mount may show a part of the tree only.
      let root = fields[3] == "/" ? "" : fields[3]
      guard group == root || group.hasPrefix("\(root)/") else { continue }
      let path = group.dropFirst(root.count)
      return path == "/" ? String(fields[4]) : "\(fields[4])\(path)"
    }
    return nil
  }
}

/// What the system answered with: an `errno`.
struct SystemError: Error {
  let code: Int32
}

/// The descriptors that the kernel reports pressure on, and one that ends the wait for it.
struct PressureTriggers: Sendable {
  private static let triggers: [(text: String, pressure: MemoryPressure)] = [
    // Microseconds, in a window that the kernel grants without privileges: a multiple of 2 s.
    ("some 200000 2000000", .warning), ("full 200000 2000000", .critical),
  ]

  private let descriptors: [Int32]
  /// A pair that is connected: what is done to the second wakes who waits for the first.
  private let end: [Int32]

  /// Takes over descriptors that become urgent with each pressure.
  init(_ descriptors: [Int32]) throws(SystemError) {
    var end: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let result = socketpair(AF_UNIX, kind, 0, &end)
    let error = errno
    (self.descriptors, self.end) = (descriptors, end)
    guard result == 0 else {
      close()
      throw SystemError(code: error)
    }
  }

  init(file: String) throws(SystemError) {
    var descriptors: [Int32] = []
    for trigger in Self.triggers {
      let descriptor = open(file, O_RDWR | O_NONBLOCK | O_CLOEXEC)
      if descriptor >= 0 { descriptors.append(descriptor) }
      // The kernel wants the zero at the end of the text.
      let text = Array(trigger.text.utf8CString)
      guard descriptor >= 0, write(descriptor, text, text.count) > 0 else {
        let error = SystemError(code: errno)
        for descriptor in descriptors { Glibc.close(descriptor) }
        throw error
      }
    }
    try self.init(descriptors)
  }

  /// Calls `body` whenever there is pressure, until the end of the wait.
  func wait(_ body: (MemoryPressure) -> Void) {
    var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLPRI), revents: 0) }
    polled.append(pollfd(fd: end[0], events: Int16(POLLIN), revents: 0))
    while polled.last?.revents == 0 {
      guard poll(&polled, nfds_t(polled.count), -1) > 0 else { continue }
      for (index, trigger) in Self.triggers.enumerated() {
        let events = Int32(polled[index].revents)
        if events & POLLERR != 0 {
          // The control group is gone; a negative descriptor is passed over.
          polled[index].fd = -1
        } else if events & POLLPRI != 0 {
          body(trigger.pressure)
        }
      }
    }
  }

  func endWait() {
    shutdown(end[1], Int32(SHUT_WR))
  }

  func close() {
    for descriptor in descriptors + end where descriptor >= 0 { Glibc.close(descriptor) }
  }
}
