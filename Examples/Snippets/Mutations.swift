// The code of the guide Mutations: the build compiles it, and a test compares it with the guide.

struct Restaurant: Sendable {
  var reserve: @Sendable (_ guest: String, _ seats: Int) async throws -> Reservation = {
    Reservation(guest: $0, seats: $1)
  }
  var freeSeats: @Sendable () async throws -> Int = { 40 }
}

extension OperationContext {
  var restaurant: Restaurant {
    get { self[RestaurantKey.self] }
    set { self[RestaurantKey.self] = newValue }
  }

  private enum RestaurantKey: Key {
    static var defaultValue: Restaurant { Restaurant() }
  }
}

// snippet: call a mutation
import Operation

struct Reservation: Sendable, Equatable {
  let guest: String
  let seats: Int
}

struct Reserve: SimpleMutationRequest, Hashable {
  struct Arguments: Sendable {
    let guest: String
    let seats: Int
  }

  func mutate(with arguments: Arguments, in context: OperationContext) async throws -> Reservation {
    try await context.restaurant.reserve(arguments.guest, arguments.seats)
  }
}
// end

// snippet: call a mutation 2
func reserveTwice(in client: OperationClient) async throws {
  let store = client.store(for: Reserve())
  let first = try await store.mutate(with: Reserve.Arguments(guest: "Ada", seats: 2))
  let again = try await store.retryLatest()
  print(first == again, store.history.count)
}
// end

// snippet: call a mutation 3
struct ReserveForStaff: SimpleMutationRequest, Hashable {
  func mutate(with _: Void, in context: OperationContext) async throws -> Reservation {
    try await context.restaurant.reserve("staff", 6)
  }
}

func reserveForStaff(in client: OperationClient) async throws -> Reservation {
  try await client.store(for: ReserveForStaff()).mutate(with: ())
}
// end

// snippet: the history of calls
func hasFailedOften(_ guest: String, in store: OperationStore<Reserve.State>) -> Bool {
  store.history.count { $0.arguments.guest == guest && $0.status.isFailure } >= 3
}
// end

// snippet: calls that must not overlap
func carefulReserve() -> some MutationRequest<Reserve.Arguments, Reservation> {
  Reserve()
    .timeout(after: .seconds(10))
    .retry(limit: 2) { error in error is OperationTimeoutError }
    .maxHistory(length: 20)
    .serialized(in: "dining room")
}
// end

// snippet: update what the change affects
struct FreeSeatsQuery: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws -> Int {
    try await context.restaurant.freeSeats()
  }
}

func reserveAndInvalidate() -> Mutation<Reserve.Arguments, Reservation> {
  Mutation(path: ["reserve-and-invalidate"]) { arguments, context in
    let reservation = try await Reserve().run(with: arguments, in: context)
    context.operationClient?.invalidate(FreeSeatsQuery())
    return reservation
  }
}
// end
