import Glibc

/// A thread that polls file descriptors until ``end()``.
///
/// It also ends when `poll` fails, such as after the limit of descriptors was lowered.
struct DescriptorPoll: Sendable {
  private let thread: PosixThread
  /// The write end of a connected pair. The thread polls the read end, and ends when this one is
  /// shut down.
  private let writeEnd: FileDescriptor

  /// Starts the thread, which retains the descriptors.
  ///
  /// - Parameters:
  ///   - events: The events that are waited for, such as `POLLIN`.
  ///   - body: Called on the thread with the index of a descriptor and its events. It must not call
  ///     code of a user. It returns `false` for a descriptor that is not to be polled any more.
  init(
    _ descriptors: [FileDescriptor], for events: Int32,
    body: @escaping @Sendable (_ index: Int, _ events: Int32) -> Bool
  ) throws(SystemError) {
    let (readEnd, writeEnd) = try FileDescriptor.pair()
    self.writeEnd = writeEnd
    thread = try PosixThread {
      var polled = descriptors.map { pollfd(fd: $0.number, events: Int16(events), revents: 0) }
      polled.append(pollfd(fd: readEnd.number, events: Int16(POLLIN), revents: 0))
      while polled.last?.revents == 0 {
        if poll(&polled, nfds_t(polled.count), -1) < 0 {
          if errno == EINTR { continue }
          return
        }
        for index in descriptors.indices where polled[index].revents != 0 {
          // The kernel ignores a negative descriptor.
          if !body(index, Int32(polled[index].revents)) { polled[index].fd = -1 }
        }
      }
    }
  }

  /// Ends the thread, and waits until it has released the descriptors. Called once.
  func end() {
    shutdown(writeEnd.number, Int32(SHUT_WR))
    thread.join()
  }
}
