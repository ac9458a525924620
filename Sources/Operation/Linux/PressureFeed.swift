import Dispatch
import FoundationEssentials
import Glibc
import ReactiveStreams
import Synchronization

/// What a ``PressureStallSource`` observes: the triggers that it sets in a pressure file of the
/// kernel.
final class PressureFeed: Sendable {
  private static let queue = DispatchQueue(label: "swift-operation.memory")
  private static let triggers: [(text: String, pressure: MemoryPressure)] = [
    // Microseconds of waiting, and the window of microseconds that they lie in. The kernel accepts a
    // multiple of two seconds as the window of a process without privileges.
    ("some 200000 2000000", .warning), ("full 200000 2000000", .critical),
  ]

  private let file: String?
  private let hasReported = Atomic(false)

  init(file: String?) { self.file = file }

  /// Calls `notify` on a queue with each pressure, until the subscription is cancelled.
  func begin(_ notify: @escaping @Sendable (MemoryPressure) -> Void) -> OperationSubscription {
    var problems = ""
    for file in file.map({ [$0] }) ?? Self.files() {
      do throws(SystemError) {
        // On a queue: a thread that cancels waits for the one that polls, and may be what a handler
        // waits for.
        let poll = try Self.poll(Self.openTriggers(in: file)) { pressure in
          Self.queue.async { notify(pressure) }
        }
        return OperationSubscription { poll.end() }
      } catch {
        problems += " \(file): \(error.text)."
      }
    }
    if !hasReported.exchange(true, ordering: .relaxed) {
      OperationIssue.report(
        .unavailableSource, "The kernel reports no memory pressure to this process.\(problems)")
    }
    return .empty
  }

  /// Returns a descriptor for each trigger, which becomes urgent when the pressure occurs.
  static func openTriggers(in file: String) throws(SystemError) -> [FileDescriptor] {
    try triggers.map { trigger throws(SystemError) in
      let descriptor = FileDescriptor(open(file, O_RDWR | O_NONBLOCK | O_CLOEXEC))
      guard descriptor.number >= 0 else { throw SystemError() }
      // The kernel expects the zero at the end of the text.
      let text = Array(trigger.text.utf8CString)
      guard write(descriptor.number, text, text.count) > 0 else { throw SystemError() }
      return descriptor
    }
  }

  /// Calls `body` with the pressure of each descriptor that becomes urgent, on the thread that polls.
  ///
  /// - Parameter descriptors: Those of ``openTriggers(in:)``.
  static func poll(
    _ descriptors: [FileDescriptor], _ body: @escaping @Sendable (MemoryPressure) -> Void
  ) throws(SystemError) -> DescriptorPoll {
    try DescriptorPoll(descriptors, for: POLLPRI) { index, events in
      // The control group was removed.
      if events & POLLERR != 0 { return false }
      if events & POLLPRI != 0 { body(triggers[index].pressure) }
      return true
    }
  }
}

extension PressureFeed {
  private static func files() -> [String] {
    let group = try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8)
    let mounts = try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
    let directory = controlGroup(in: group ?? "", mounts: mounts ?? "")
    return (directory.map { ["\($0)/memory.pressure"] } ?? []) + ["/proc/pressure/memory"]
  }

  /// Returns the directory of a process's control group of version 2; `nil` if there is none, or if
  /// no mount contains it.
  ///
  /// - Parameters:
  ///   - groups: The text of `/proc/self/cgroup`.
  ///   - mounts: The text of `/proc/self/mountinfo`.
  static func controlGroup(in groups: String, mounts: String) -> String? {
    guard
      let entry = groups.split(separator: "\n").first(where: { $0.hasPrefix("0::/") }),
      case let group = entry.dropFirst(3), !group.hasPrefix("/..")
    else { return nil }
    for line in mounts.split(separator: "\n") {
      guard let separator = line.firstRange(of: " - cgroup2 ") else { continue }
      let fields = line[..<separator.lowerBound].split(separator: " ")
      guard fields.count > 4 else { continue }
      // A mount may contain a part of the tree only.
      let root = fields[3] == "/" ? "" : fields[3]
      guard group == root || group.hasPrefix("\(root)/") else { continue }
      let path = group.dropFirst(root.count)
      return path == "/" ? String(fields[4]) : "\(fields[4])\(path)"
    }
    return nil
  }
}
