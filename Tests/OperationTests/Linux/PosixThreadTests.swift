import Glibc
import Testing

@testable import Operation

@Suite("PosixThread") struct PosixThreadTests {
  @Test("A thread blocks signals, but not those of a crash, for which a program may have a handler")
  func signals() throws {
    let numbers = [
      SIGINT, SIGTERM, SIGTSTP, SIGCONT, SIGPIPE,
      SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT,
    ]
    let blocked = Recorder<Int32>()
    let thread = try PosixThread {
      var mask = sigset_t()
      pthread_sigmask(SIG_BLOCK, nil, &mask)
      for number in numbers where sigismember(&mask, number) == 1 { blocked.append(number) }
    }
    thread.join()
    #expect(blocked.all == [SIGINT, SIGTERM, SIGTSTP, SIGCONT, SIGPIPE])
  }
}
