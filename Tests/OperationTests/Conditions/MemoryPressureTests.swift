import Foundation
import Glibc
import Operation
import Testing

@testable import struct Operation.PressureTriggers
@testable import class Operation.PressureFeed

@Suite("Memory pressure") struct MemoryPressureTests {
  @Test("A manual source tells everything that is sent, again, too, in its order")
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

  @Test("Without a file to ask there is one report that names it, and nobody is told")
  func absent() async {
    let source = PressureStallSource(file: "/proc/pressure/none")
    let reports = await issues {
      for _ in 0..<3 { source.subscribe { _ in }.cancel() }
    }.issues
    #expect(reports.count == 1 && reports.first?.kind == .unavailableSource)
    #expect(reports.first?.message.contains("/proc/pressure/none: No such file") == true)
  }

  @Test("The file of the kernel is asked, where it is there")
  func present() async throws {
    let file = "/proc/pressure/memory"
    guard let triggers = try? PressureTriggers(file: file) else {
      print("\(file) takes no trigger of this process: not tested here.")
      return
    }
    triggers.close()
    let reports = await issues {
      for source in [PressureStallSource(file: file), .shared] {
        source.subscribe { _ in }.cancel()
      }
    }.issues
    #expect(reports == [])
  }

  @Test("A descriptor that becomes urgent tells its pressure, until the wait is ended")
  func urgent() async throws {
    // Bytes out of band make a socket urgent, as a pressure does with its trigger.
    var (warning, critical) = ([Int32](repeating: -1, count: 2), [Int32](repeating: -1, count: 2))
    let kind = Int32(SOCK_STREAM.rawValue)
    try #require(socketpair(AF_UNIX, kind, 0, &warning) == 0)
    try #require(socketpair(AF_UNIX, kind, 0, &critical) == 0)
    let pairs = [warning, critical]
    let triggers = try PressureTriggers([warning[0], critical[0]])
    let log = Recorder<MemoryPressure>()
    let waiting = Task {
      await onThreads(1) { _ in
        triggers.wait { pressure in
          var byte: UInt8 = 0
          _ = recv(pairs[pressure.rawValue][0], &byte, 1, Int32(MSG_OOB))
          log.append(pressure)
        }
      }
    }
    let sent: [MemoryPressure] = [.warning, .critical, .critical, .warning]
    for (index, pressure) in sent.enumerated() {
      try #require(send(pairs[pressure.rawValue][1], "!", 1, Int32(MSG_OOB)) == 1)
      await log.wait(forCount: index + 1)
    }
    triggers.endWait()
    await waiting.value
    #expect(log.all == sent)
    triggers.close()
    for descriptor in [warning[1], critical[1]] { close(descriptor) }
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

  @Test("Ten thousand subscriptions leave no descriptor and no thread behind, of any observer")
  func leavesNothing() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path()
    try Data().write(to: URL(filePath: file))
    defer { try? FileManager.default.removeItem(atPath: file) }
    let lines = try await SignalChildProcess.run(["cycles", file]) { try $0.lines(4) }
    let names = ["terminal", "pressure", "pressure of the kernel", "pressure beside another"]
    #expect(lines == names.map { "\($0): 0 descriptors, threads: false" })
  }
}
