import Operation
import Synchronization

/// The value of the requests of a storm: the run that returned it, and its edits.
struct Tagged: Sendable, Hashable, Codable {
  /// The ticket of the run; `nil` for a value that was written.
  var ticket: Int?
  var edits: [Int] = []
}

struct StormFailure: Error {}

/// A gate that suspends tasks until it is opened, and ignores their cancellation.
final class Dam: Sendable {
  private let state = Mutex((isOpen: false, waiters: [CheckedContinuation<Void, Never>]()))

  func wait() async {
    await withCheckedContinuation { waiter in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiters.append(waiter) }
        return state.isOpen
      }
      if isOpen { waiter.resume() }
    }
  }

  /// Resumes the present waiters.
  func release() {
    let waiters = state.withLock { state in
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func open() {
    state.withLock { $0.isOpen = true }
    release()
  }
}

/// The requests of a storm: fast, slow, failing and dependent ones.
struct StormRequests: Sendable {
  typealias State = QueryState<Tagged, any Error>
  typealias Pages = PaginatedState<Int, Tagged, any Error>
  typealias Changes = MutationState<Int, Tagged, any Error>

  private final class Tickets: Sendable {
    let last = Atomic(0)
  }

  let dam = Dam()
  /// What the sequences of requests and of conditions receive.
  let news = Broadcast<Int>()
  /// Loads the numbers of the saved queries.
  let batches = BatchLoader<Int, Int>(delay: .milliseconds(500), maxSize: 4) { ids in
    Dictionary(uniqueKeysWithValues: ids.map { ($0, $0) })
  }
  private let tickets = Tickets()

  func nextTicket() -> Int {
    tickets.last.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
  }

  func query(_ id: Int, at name: String = "query") -> some QueryRequest<Tagged, State> {
    Query<Tagged, any Error>(path: [name, id % 10, id]) { context, continuation in
      let ticket = nextTicket()
      try await behave(id, ticket, context, continuation)
      return Tagged(ticket: ticket)
    }
    .backoff(.constant(.seconds(1)))
  }

  private func behave(
    _ id: Int, _ ticket: Int, _ context: OperationContext,
    _ continuation: OperationContinuation<Tagged, any Error>
  ) async throws {
    switch id % 9 {
    case 0: break
    case 1: if ticket % 2 == 0 { throw StormFailure() }
    case 2: try await context.operationClock.sleep(for: .seconds(1 + ticket % 4))
    case 3:
      continuation.yield(Tagged(ticket: ticket, edits: [1]))
      try await context.operationClock.sleep(for: .seconds(1))
      continuation.yield(Tagged(ticket: ticket, edits: [2]))
    case 4: await dam.wait()
    case 5: try await context.operationClock.sleep(for: .seconds(1_000_000))
    case 6:
      // Two with lower identifiers, so that there is no cycle.
      for other in [id / 2, id / 3] where other % 9 < 4 && other < id {
        _ = try await context.ensure(query(other))
      }
    case 7: _ = context.value(of: query(id / 2))
    default:
      // A cycle of two, which ends with an error.
      if id % 18 == 8 { _ = try await context.ensure(query(id + 9)) }
      if id % 18 == 17 { _ = try await context.ensure(query(id - 9)) }
    }
  }

  func pages(_ id: Int) -> Paginated<Int, Tagged> {
    Paginated(
      path: ["pages", id], initialPageId: 0,
      nextPageId: { page, _ in page.id < 12 ? page.id + 1 : nil },
      previousPageId: { page, _ in page.id > -3 ? page.id - 1 : nil }
    ) { _, context in
      let ticket = nextTicket()
      if id % 3 == 0 { try await context.operationClock.sleep(for: .seconds(1)) }
      if id % 3 == 1, ticket % 5 == 0 { throw StormFailure() }
      return Tagged(ticket: ticket)
    }
  }

  func mutation(_ id: Int) -> some MutationRequest<Int, Tagged> & StatefulOperationRequest<
    Tagged, Changes
  > {
    Mutation<Int, Tagged>(path: ["mutation", id]) { number, context in
      let ticket = nextTicket()
      if number % 3 == 0 { try await context.operationClock.sleep(for: .seconds(1)) }
      if number % 7 == 0 { throw StormFailure() }
      return Tagged(ticket: ticket, edits: [number])
    }
    .serialized(in: id % 3)
    .persisted()
  }
}
