import Glibc
import Synchronization

/// The end of a pipe into which the handlers write the number of each signal.
private let signalOutput = Atomic<Int32>(-1)

/// Receives signals as bytes of a pipe, so that a loop can wait for them.
final class Signals {
  let descriptor: Descriptor
  private let output: Descriptor
  private let numbers: [Int32]

  /// Handles the signals from now on.
  init(_ numbers: [Int32]) throws(InspectError) {
    let (input, output) = try Descriptor.pair()
    input.setNonBlocking()
    output.setNonBlocking()
    descriptor = input
    self.output = output
    self.numbers = numbers
    signalOutput.store(output.number, ordering: .sequentiallyConsistent)
    var unblocked = sigset_t()
    sigemptyset(&unblocked)
    for number in numbers {
      Self.handle(number)
      sigaddset(&unblocked, number)
    }
    // The parent may have blocked them.
    sigprocmask(SIG_UNBLOCK, &unblocked, nil)
  }

  deinit {
    for number in numbers { signal(number, SIG_DFL) }
    signalOutput.store(-1, ordering: .sequentiallyConsistent)
  }

  private static func handle(_ number: Int32) {
    var action = sigaction()
    action.sa_flags = SA_RESTART
    action.__sigaction_handler.sa_handler = { number in
      let error = errno
      var byte = UInt8(truncatingIfNeeded: number)
      _ = write(signalOutput.load(ordering: .sequentiallyConsistent), &byte, 1)
      errno = error
    }
    sigaction(number, &action, nil)
  }

  /// Returns the signals that have arrived.
  func received() -> [Int32] {
    guard case .bytes(let bytes) = descriptor.read() else { return [] }
    return bytes.map(Int32.init)
  }

  /// Lets a signal have its default effect on this process, and handles it again afterwards.
  static func raiseByDefault(_ number: Int32) {
    signal(number, SIG_DFL)
    raise(number)
    handle(number)
  }
}
