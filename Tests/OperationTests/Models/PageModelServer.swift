import Operation
import Synchronization

/// The server of a schedule. It determines an answer when it gets the request. While it is held, it
/// sends no answer.
final class WorldServer: Sendable {
  /// A fetch, and the answer to it.
  private struct Fetch: Sendable {
    let id: Int
    let kind: PaginatedRunKind
    let entry: PageEntry?
    let waiter: UnsafeContinuation<PageEntry?, Never>

    func resume() { waiter.resume(returning: entry) }
  }

  private struct Contents: Sendable {
    var world: PageWorld
    var isHeld = false
    var waiting: [Fetch] = []
  }

  private let contents: Mutex<Contents>

  init(_ world: PageWorld) { contents = Mutex(Contents(world: world)) }

  var initial: Int { contents.withLock { $0.world.initial } }
  var requests: [Int] { contents.withLock { $0.world.requests } }
  var waitingCount: Int { contents.withLock { $0.waiting.count } }

  func perform(_ change: PageWorld.Change) { contents.withLock { $0.world.perform(change) } }

  func hold() { contents.withLock { $0.isHeld = true } }

  /// Resumes one waiting fetch of a page: the newest, as older ones belong to runs that have ended.
  func release(of id: Int, _ kind: PaginatedRunKind) {
    let fetch = contents.withLock { contents in
      let index = contents.waiting.lastIndex { $0.id == id && $0.kind == kind }
      return index.map { contents.waiting.remove(at: $0) }
    }
    fetch?.resume()
  }

  /// Resumes all waiting fetches, and holds no further ones.
  func release() {
    let waiting = contents.withLock { contents in
      contents.isHeld = false
      defer { contents.waiting = [] }
      return contents.waiting
    }
    for fetch in waiting { fetch.resume() }
  }

  func page(_ paging: PaginatedPaging<Int, PageEntry>) async throws -> PageEntry {
    let entry = await withUnsafeContinuation { waiter in
      let unheld = contents.withLock { contents in
        let entry = contents.world.answer(paging.pageId)
        let fetch = Fetch(id: paging.pageId, kind: paging.kind, entry: entry, waiter: waiter)
        if contents.isHeld { contents.waiting.append(fetch) }
        return contents.isHeld ? nil : fetch
      }
      unheld?.resume()
    }
    guard let entry else { throw Failed(code: paging.pageId) }
    return entry
  }
}

struct WorldPages: PaginatedRequest {
  let server: WorldServer
  var initialPageId: Int { server.initial }
  var path: OperationPath { ["world"] }

  func pageId(
    after page: PaginatedPage<Int, PageEntry>, using paging: PaginatedPaging<Int, PageEntry>,
    in context: OperationContext
  ) -> Int? { page.value.next }

  func pageId(
    before page: PaginatedPage<Int, PageEntry>, using paging: PaginatedPaging<Int, PageEntry>,
    in context: OperationContext
  ) -> Int? { page.value.previous }

  func fetchPage(
    using paging: PaginatedPaging<Int, PageEntry>, in context: OperationContext,
    with continuation: OperationContinuation<PageEntry, any Error>
  ) async throws -> PageEntry { try await server.page(paging) }
}
