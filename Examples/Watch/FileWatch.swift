import Dispatch
import Foundation
import Glibc
import Synchronization

/// Watches a file with inotify.
///
/// The lock guards the source until it is cancelled.
final class FileWatch: Sendable {
  /// The queue on which changes are read, and watches end.
  static let queue = DispatchQueue(label: "watch")
  private let source: Mutex<(any DispatchSourceRead)?>

  /// Calls `changed` on its own queue whenever the file may have changed, and `ended` when the
  /// descriptor has been closed.
  init(
    _ file: URL, changed: @escaping @Sendable () -> Void, ended: @escaping @Sendable () -> Void
  ) throws(SettingsError) {
    let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    guard descriptor >= 0 else { throw .notWatched(errno) }
    // The folder, because many programs save a file by replacing it.
    let folder = file.deletingLastPathComponent().path(percentEncoded: false)
    let mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE
    guard inotify_add_watch(descriptor, folder, UInt32(mask)) >= 0 else {
      let number = errno
      close(descriptor)
      throw .notWatched(number)
    }
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: Self.queue)
    source.setEventHandler { [name = file.lastPathComponent] in
      if Self.read(descriptor, mentions: name) { changed() }
    }
    source.setCancelHandler {
      close(descriptor)
      ended()
    }
    source.activate()
    self.source = Mutex(source)
  }

  deinit { end() }

  /// Ends the calls, and closes the descriptor.
  func end() {
    let source = source.withLock { $0.take() }
    source?.cancel()
  }

  /// Reads the pending events. Returns whether one of them may concern the file.
  private static func read(_ descriptor: Int32, mentions name: String) -> Bool {
    var isMentioned = false
    // Room for some events with names of any length.
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
      while case let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count), count > 0 {
        var rest = UnsafeRawBufferPointer(buffer)[..<count]
        while !rest.isEmpty {
          let event = rest.load(as: inotify_event.self)
          rest = rest.dropFirst(MemoryLayout<inotify_event>.size)
          let bytes = rest.prefix(Int(event.len)).prefix { $0 != 0 }
          rest = rest.dropFirst(Int(event.len))
          // An event without a name means that there were too many, or that the folder was removed.
          if bytes.isEmpty || bytes.elementsEqual(name.utf8) { isMentioned = true }
        }
      }
    }
    return isMentioned
  }
}
