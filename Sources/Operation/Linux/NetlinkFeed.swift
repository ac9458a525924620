import Dispatch
import Glibc
import ReactiveStreams
import Synchronization

/// What a ``NetlinkNetworkObserver`` observes: the status that the kernel reports on netlink sockets.
final class NetlinkFeed: Sendable {
  typealias Status = NetworkConnectionStatus

  private let queue = DispatchQueue(label: "swift-operation.network")
  private let openSocket: @Sendable () -> Int32
  private let hasReported = Atomic(false)

  init(_ openSocket: @escaping @Sendable () -> Int32) { self.openSocket = openSocket }

  /// Returns the present status, asked for on a socket of its own.
  func measure() -> Status {
    (try? NetlinkSocket(openSocket(), groups: 0).ask()) ?? unobservableStatus()
  }

  /// Calls `notify` with the present status, and on a queue with each later one, until the
  /// subscription is cancelled.
  func begin(_ notify: @escaping @Sendable (Status) -> Void) -> OperationSubscription {
    do throws(SystemError) {
      let socket = try NetlinkSocket(openSocket(), groups: NetlinkSocket.changes)
      // Opened now: later, the process may have no descriptor left.
      let answers = try NetlinkSocket(openSocket(), groups: 0)
      // After the first socket was opened, which is notified of what changes meanwhile. Before the thread
      // starts, or it could report a later status first.
      notify(try answers.ask())
      let poll = try DescriptorPoll([socket.descriptor], for: POLLIN) { [self] _, _ in
        read(socket, answers, notify)
      }
      return OperationSubscription { poll.end() }
    } catch {
      notify(unobservableStatus())
      return .empty
    }
  }

  /// Asks again after what has arrived; returns `false` if a socket has failed. One whose answer is late is not
  /// used any more, because the answer could be taken for the next one.
  private func read(
    _ socket: NetlinkSocket, _ answers: NetlinkSocket,
    _ notify: @escaping @Sendable (Status) -> Void
  ) -> Bool {
    // On a queue: a thread that cancels waits for this one, and may be what a handler waits for.
    do throws(SystemError) {
      if try socket.readNotifications() {
        let status = try answers.ask()
        queue.async { notify(status) }
      }
      return true
    } catch {
      queue.async { [self] in notify(unobservableStatus()) }
      return false
    }
  }

  /// Returns the status for a kernel that does not answer, which is reported once.
  private func unobservableStatus() -> Status {
    if !hasReported.exchange(true, ordering: .relaxed) {
      OperationIssue.report(
        .unobservableNetwork,
        "The kernel does not answer on a netlink socket; the network counts as connected.")
    }
    return .connected
  }
}
