import FoundationEssentials
import Glibc
import Operation
import Testing

/// Tests with a real process, which is stopped and continued.
@Suite("TerminalActivityObserver", .timeLimit(.minutes(5)))
struct TerminalActivityTests {
  @Test("The observer notifies before every stop and after it, and then restores the signals")
  func stopped() async throws {
    let (lines, notifiedBefore, ending) = try await SignalChildProcess.run(["plain"]) { child in
      var lines = try child.lines(2)
      var notifiedBefore = 0
      for _ in 0..<5 {
        child.send(SIGTSTP)
        guard child.waitUntilStopped() == SIGTSTP else { break }
        // Not in every round, because on a busy machine a tenth of a second may be too short.
        if child.hasLine() { notifiedBefore += 1 }
        child.send(SIGCONT)
        guard child.waitUntilContinued() else { break }
        lines += try child.lines(2)
      }
      child.resume()
      let ending = try child.lines(2)
      // A signal that is no longer observed has its default effect.
      child.send(SIGTSTP)
      return (lines, notifiedBefore, ending + ["stopped by \(child.waitUntilStopped() == SIGTSTP)"])
    }
    let rounds = Array(repeating: ["background background", "foreground foreground"], count: 5)
    #expect(lines == ["foreground", "ready"] + rounds.joined())
    #expect(notifiedBefore > 0)
    #expect(ending == ["as before", "done", "stopped by true"])
  }

  @Test("An observer that was used while there were no descriptors works when there are some")
  func withoutDescriptors() async throws {
    let lines = try await SignalChildProcess.run(["descriptors"]) { child in
      let start = try child.lines(3)
      child.send(SIGTSTP)
      guard child.waitUntilStopped() == SIGTSTP else { return start }
      child.send(SIGCONT)
      return try start + child.lines(2)
    }
    #expect(lines.first?.contains("no descriptors left") == true)
    let changes = ["background background", "foreground foreground"]
    #expect(Array(lines.dropFirst()) == ["foreground", "ready"] + changes)
  }

  @Test("Subscribers are notified of a stop that cannot be caught when it ends")
  func uncaught() async throws {
    let lines = try await SignalChildProcess.run(["plain"]) { child in
      let start = try child.lines(2)
      child.send(SIGSTOP)
      guard child.waitUntilStopped() == SIGSTOP, !child.hasLine() else { return start }
      child.send(SIGCONT)
      return try child.lines(2)
    }
    #expect(lines == ["background background", "foreground foreground"])
  }

  @Test("The handlers of a program are still called, and its activity is observed")
  func own() async throws {
    let (lines, ending) = try await SignalChildProcess.run(["own"]) { child in
      var lines: [Set<String>] = []
      _ = try child.lines(2)
      for _ in 0..<2 {
        child.send(SIGTSTP)
        guard child.waitUntilStopped() == SIGSTOP else { break }
        lines.append(Set(try child.lines(1)))
        child.send(SIGCONT)
        lines.append(Set(try child.lines(3)))
      }
      child.resume()
      return (lines, try child.lines(2))
    }
    let continued: Set = ["own continue", "background background", "foreground foreground"]
    #expect(lines == [["own stop"], continued, ["own stop"], continued])
    #expect(ending == ["as before", "done"])
  }

  @Test("Handlers that a program installs later receive the signals, and stay installed")
  func later() async throws {
    let (lines, ending) = try await SignalChildProcess.run(["later"]) { child in
      _ = try child.lines(2)
      child.send(SIGTSTP)
      guard child.waitUntilStopped() == SIGSTOP else { return ([String](), [String]()) }
      var lines = try child.lines(1)
      child.send(SIGCONT)
      lines += try child.lines(1)
      child.resume()
      return (lines, try child.lines(2))
    }
    #expect(lines == ["own stop", "own continue"])
    #expect(ending == ["as during", "done"])
  }

  @Test("A program that ignores the stop still ignores it")
  func ignoring() async throws {
    let lines = try await SignalChildProcess.run(["ignoring"]) { child in
      var lines = try child.lines(2)
      child.send(SIGTSTP)
      child.resume()
      lines += try child.lines(2)
      child.send(SIGTSTP)
      child.resume()
      return lines + ["ended: \(try child.line() == nil)"]
    }
    #expect(lines == ["foreground", "ready", "as before", "done", "ended: true"])
  }

  @Test("A program that ignores the continuation still ignores it, and its activity is observed")
  func ignoringContinuation() async throws {
    let lines = try await SignalChildProcess.run(["ignoring-continue"]) { child in
      var lines = try child.lines(2)
      child.send(SIGTSTP)
      guard child.waitUntilStopped() == SIGTSTP else { return lines }
      child.send(SIGCONT)
      lines += try child.lines(2)
      child.resume()
      return try lines + child.lines(2)
    }
    let changes = ["background background", "foreground foreground"]
    #expect(lines == ["foreground", "ready"] + changes + ["as before", "done"])
  }

  @Test(
    "A continuation that arrives while subscribers are notified of a stop ends the stop",
    .disabled(
      if: ProcessInfo.processInfo.environment["OPERATION_TEST_SANITIZER"] == "thread",
      "The thread sanitizer blocks all signals during a handler, so this one comes too late."))
  func continuedBeforeStop() async throws {
    let lines = try await SignalChildProcess.run(["slow"]) { child in
      _ = try child.lines(2)
      child.send(SIGTSTP)
      let notified = try child.lines(1)
      child.send(SIGCONT)
      child.resume()
      return try notified + child.lines(2)
    }
    #expect(lines == ["background background", "as before", "done"])
  }

  @Test("A handler that never returns does not prevent the stop")
  func slow() async throws {
    let signals = try await SignalChildProcess.run(["slow"]) { child in
      _ = try child.lines(2)
      var signals: [Int32?] = []
      for _ in 0..<2 {
        child.send(SIGTSTP)
        signals.append(child.waitUntilStopped())
        child.send(SIGCONT)
        _ = child.waitUntilContinued()
      }
      return signals
    }
    #expect(signals == [SIGTSTP, SIGTSTP])
  }

  @Test("A program that no shell can continue is in the foreground again at once")
  func orphaned() async throws {
    let lines = try await SignalChildProcess.run(["plain"], isOrphaned: true) { child in
      var lines = try child.lines(2)
      for _ in 0..<2 {
        child.send(SIGTSTP)
        lines += try child.lines(2)
      }
      child.resume()
      return try lines + child.lines(1)
    }
    let round = ["background background", "foreground foreground"]
    #expect(lines == ["foreground", "ready"] + round + round + ["as before"])
  }

  @Test("The last handler may cancel itself and subscribe again, also before the stop")
  func resubscribes() async throws {
    let lines = try await SignalChildProcess.run(["anew"]) { child in
      var lines = try child.lines(1)
      for _ in 0..<3 {
        child.send(SIGTSTP)
        guard child.waitUntilStopped() == SIGTSTP else { break }
        child.send(SIGCONT)
        lines += try child.lines(2)
        // On a busy machine it continues before its handler is called, and the new one is not
        // called.
        if child.hasLine(within: 2_000) { lines += try child.lines(2) }
      }
      return lines
    }
    let changes = lines.filter { $0 != "subscribed" }
    #expect(changes.filter { $0 == "background" }.count == 3)
    #expect(lines == ["subscribed"] + changes.flatMap { [$0, "subscribed"] })
  }

  @Test("A program in the background of its terminal is active until it is suspended")
  func background() async throws {
    let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard terminal >= 0 else { return print("There are no terminals here: not tested.") }
    defer { close(terminal) }
    // Unlocks the terminal, and reads its number: TIOCSPTLCK, TIOCGPTN.
    var (isLocked, number): (Int32, Int32) = (0, 0)
    try #require(ioctl(terminal, 0x4004_5431, &isLocked) == 0)
    try #require(ioctl(terminal, 0x8004_5430, &number) == 0)
    let path = "/dev/pts/\(number)"
    let lines = try await SignalChildProcess.run(["shell", path], isOrphaned: true) { shell in
      // The job of the shell, whose terminal belongs to the shell.
      var lines = try shell.lines(3)
      guard let index = lines.firstIndex(where: { pid_t($0) != nil }),
        let job = pid_t(lines.remove(at: index))
      else { return lines }
      kill(job, SIGTSTP)
      try waitUntilStopped(job)
      kill(job, SIGCONT)
      return try lines + shell.lines(2)
    }
    #expect(lines == ["foreground", "ready", "background background", "foreground foreground"])
  }
}

/// Waits until a process that is not our child is stopped, for a minute at most.
private func waitUntilStopped(_ process: pid_t) throws {
  for _ in 0..<60_000 {
    let stat = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
    if stat.split(separator: ")").last?.hasPrefix(" T") == true { return }
    poll(nil, 0, 1)
  }
  throw SignalChildProcess.Stuck()
}
