import Foundation
import SharingOperation
import Synchronization

/// Invalidates the query of a file when the file changes, as long as the query is observed.
///
/// It watches for one store: give each client a request with a controller of its own.
///
/// The lock guards the watch.
final class FileController: OperationController {
  /// Sends whether the file is watched, whenever that changes.
  let isWatching = Broadcast<Bool>()
  private let file: URL
  private let watch = Mutex<FileWatch?>(nil)

  init(_ file: URL) {
    self.file = file
  }

  func control(with controls: OperationControls<SettingsQuery.State>) -> OperationSubscription {
    .empty
  }

  func observationBegan(with controls: OperationControls<SettingsQuery.State>) {
    do throws(SettingsError) {
      // An invalidation, and not the new contents: a run in flight may have read the old ones, and
      // its result must not be the last one.
      let new = try FileWatch(file) {
        controls.invalidate()
      } ended: { [weak self] in
        self?.watchEnded()
      }
      watch.withLock { $0 = new }
      // On the queue on which watches end, so that the last element is the present state.
      FileWatch.queue.async { [isWatching] in isWatching.send(true) }
    } catch {
      controls.yield(error: error)
    }
  }

  func observationEnded(with controls: OperationControls<SettingsQuery.State>) {
    let old = watch.withLock { $0.take() }
    old?.end()
  }

  private func watchEnded() {
    if watch.withLock({ $0 == nil }) { isWatching.send(false) }
  }
}
