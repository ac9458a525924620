import Foundation
import SharingOperation
import Synchronization

/// Has a query of a file read it again when it changes, for as long as somebody observes the query.
///
/// It watches for one store: give each client a request with a controller of its own.
///
/// The lock guards the watch.
final class FileController: OperationController {
  /// Whether the file is watched, whenever that changes.
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
      // An invalidation, and not what the file says now: a run that is under way may have read
      // what was there before, and must not have the last word.
      let new = try FileWatch(file) {
        controls.invalidate()
      } ended: { [weak self] in
        self?.watchEnded()
      }
      watch.withLock { $0 = new }
      // On the queue on which watches end, so that the last word is what is so.
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
