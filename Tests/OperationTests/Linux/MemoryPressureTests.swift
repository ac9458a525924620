import Foundation
import Glibc
import Operation
import Testing

@testable import class Operation.FileDescriptor
@testable import class Operation.PressureFeed
@testable import struct Operation.DescriptorPoll

@Suite("Memory pressure") struct MemoryPressureTests {
  @Test("A manual source notifies of every pressure that is sent, repeats included, in order")
  func manual() {
    let (source, log) = (ManualMemoryPressureSource(), Recorder<MemoryPressure>())
    source.send(.critical)
    let subscription = source.subscribe { log.append($0) }
    for pressure in [MemoryPressure.warning, .warning, .critical] { source.send(pressure) }
    subscription.cancel()
    source.send(.warning)
    #expect(log.all == [.warning, .warning, .critical] && source.subscriberCount == 0)
    #expect(MemoryPressure.warning < .critical)
  }

  @Test("Without a pressure file there is one report, which names it")
  func absent() async {
    let source = PressureStallSource(file: "/proc/pressure/none")
    let reports = await issues {
      for _ in 0..<3 { source.subscribe { _ in }.cancel() }
    }.issues
    #expect(reports.count == 1 && reports.first?.kind == .unavailableSource)
    #expect(reports.first?.message.contains("/proc/pressure/none: No such file") == true)
  }

  @Test("A file that accepts no trigger is reported with the error of the kernel")
  func refusedTrigger() async {
    let source = PressureStallSource(file: "/dev/full")
    let reports = await issues { source.subscribe { _ in }.cancel() }.issues
    #expect(reports.map(\.kind) == [.unavailableSource])
    #expect(reports.first?.message.contains("/dev/full: No space left") == true)
  }

  @Test("A descriptor with an error, as of a removed control group, reports no pressure")
  func removedGroup() async throws {
    let (removed, present) = (try SocketPair(), try SocketPair())
    try removed.fail()
    let log = Recorder<MemoryPressure>()
    let poll = try PressureFeed.poll([removed.watched, present.watched]) { pressure in
      if pressure == .critical { present.receive() }
      log.append(pressure)
    }
    for count in 1...3 {
      present.send()
      await log.wait(forCount: count)
    }
    poll.end()
    #expect(log.all == [.critical, .critical, .critical])
  }

  @Test("The pressure file of the kernel accepts the triggers, where there is one")
  func present() async throws {
    let file = "/proc/pressure/memory"
    guard (try? PressureFeed.openTriggers(in: file)) != nil else {
      print("\(file) accepts no trigger of this process: not tested here.")
      return
    }
    let reports = await issues {
      for source in [PressureStallSource(file: file), .shared] {
        source.subscribe { _ in }.cancel()
      }
    }.issues
    #expect(reports == [])
  }

  @Test("A descriptor that becomes urgent reports its pressure, until the poll is ended")
  func urgent() async throws {
    let (warning, critical) = (try SocketPair(), try SocketPair())
    let pairs = [warning, critical]
    let log = Recorder<MemoryPressure>()
    let poll = try PressureFeed.poll(pairs.map(\.watched)) { pressure in
      pairs[pressure.rawValue].receive()
      log.append(pressure)
    }
    let sent: [MemoryPressure] = [.warning, .critical, .critical, .warning]
    for (index, pressure) in sent.enumerated() {
      pairs[pressure.rawValue].send()
      await log.wait(forCount: index + 1)
    }
    poll.end()
    warning.send()
    #expect(log.all == sent)
  }

  @Test("A poll ignores a descriptor whose events were refused, and continues with the others")
  func refused() async throws {
    let (first, second) = (try SocketPair(), try SocketPair())
    let log = Recorder<Int>()
    let poll = try DescriptorPoll([first.watched, second.watched], for: POLLPRI) { index, _ in
      if index == 1 { second.receive() }
      log.append(index)
      return index == 1
    }
    // The refused descriptor stays urgent, so each further poll would find it.
    first.send()
    await log.wait(forCount: 1)
    for count in 2...3 {
      second.send()
      await log.wait(forCount: count)
    }
    poll.end()
    #expect(log.count == 3 && log.all.prefix(3) == [0, 1, 1])
  }

  @Test(
    "A control group is found where the second version is mounted",
    arguments: [
      ("0::/\n", "/", "/sys/fs/cgroup"),
      ("9:name=systemd:/\n0::/user.slice/a b\n", "/", "/sys/fs/cgroup/user.slice/a b"),
      ("0::/docker/7/job\n", "/docker/7", "/sys/fs/cgroup/job"),
      ("0::/docker/7\n", "/docker/7", "/sys/fs/cgroup"),
      ("0::/docker/77\n", "/docker/7", nil),
      ("0::/../other\n", "/", nil),
      ("4:memory:/process\n", "/", nil),
      ("", "/", nil),
    ])
  func controlGroup(groups: String, root: String, directory: String?) {
    let mounts = """
      22 1 0:21 / /proc rw,relatime - proc proc rw
      30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
      31 24 0:27 \(root) /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate

      """
    #expect(PressureFeed.controlGroup(in: groups, mounts: mounts) == directory)
  }

  @Test("Ten thousand subscriptions of each observer leave no descriptor and no thread behind")
  func leavesNothing() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path()
    try Data().write(to: URL(filePath: file))
    defer { try? FileManager.default.removeItem(atPath: file) }
    let lines = try await SignalChildProcess.run(["cycles", file]) { try $0.lines(4) }
    let names = ["terminal", "pressure", "pressure of the kernel", "pressure beside another"]
    #expect(lines == names.map { "\($0): 0 descriptors, threads: false" })
  }
}

/// Two connected sockets. A byte out of band makes one of them urgent, as a pressure does with its
/// trigger.
private struct SocketPair {
  let watched: FileDescriptor
  private let other: FileDescriptor

  init() throws {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    (watched, other) = (FileDescriptor(ends[0]), FileDescriptor(ends[1]))
  }

  /// Makes the watched socket urgent, and gives it an error.
  func fail() throws {
    // The other end closes with an unread byte.
    #expect(Glibc.send(watched.number, "!", 1, 0) == 1)
    send()
    let file = open("/dev/null", O_RDONLY)
    #expect(dup2(file, other.number) == other.number)
    close(file)
    var polled = pollfd(fd: watched.number, events: Int16(POLLPRI), revents: 0)
    try #require(Glibc.poll(&polled, 1, 0) == 1)
    try #require(Int32(polled.revents) & (POLLPRI | POLLERR) == POLLPRI | POLLERR)
  }

  func send() { #expect(Glibc.send(other.number, "!", 1, Int32(MSG_OOB)) == 1) }

  func receive() {
    var byte: UInt8 = 0
    _ = recv(watched.number, &byte, 1, Int32(MSG_OOB))
  }
}
