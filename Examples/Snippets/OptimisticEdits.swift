// The code of the guide OptimisticEdits: the build compiles it, and a test compares it with the
// guide.

// snippet: display a change at once
import SharingOperation

func reserve(
  _ arguments: Reserve.Arguments, in client: OperationClient
) async throws -> Reservation {
  try await client.store(for: FreeSeatsQuery()).optimistically { free in
    free? -= arguments.seats
  } while: {
    try await client.store(for: Reserve()).mutate(with: arguments)
  }
}
// end

// snippet: edit several stores
func warm(
  _ places: OperationPath, by degrees: Double, in client: OperationClient,
  heating: @Sendable () async throws -> Void
) async throws {
  try await client.optimistically(matching: places, of: QueryState<Double, any Error>.self) {
    $0? += degrees
  } while: {
    try await heating()
  }
}
// end

// snippet: edit the value of a model
@MainActor
final class SeatsModel {
  @SharedQuery(FreeSeatsQuery(), default: 0) var free
  @SharedQuery(Reserve()) var reservation

  func reserve(_ seats: Int, for guest: String) async throws {
    try await $free.optimistically {
      $0 -= seats
    } while: {
      try await $reservation.mutate(with: Reserve.Arguments(guest: guest, seats: seats))
    }
  }
}
// end

// snippet: the confirmed value
func describeSeats(of store: OperationStore<FreeSeatsQuery.State>) -> String {
  guard let shown = store.currentValue else { return "unknown" }
  guard store.isOptimistic, let confirmed = store.confirmedValue else { return "\(shown)" }
  return "\(shown), if all goes well, and \(confirmed) if nothing does"
}
// end

// snippet: the confirmed value 2
extension SeatsModel {
  var label: String { $free.isOptimistic ? "\(free) …" : "\(free)" }
}
// end
