// The code of the guide SeveralValues: the build compiles it, and a test compares it with the
// guide.

struct Disk: Sendable {
  var savedForecast: @Sendable (_ place: String) async -> Forecast? = { _ in nil }
}

extension OperationContext {
  var disk: Disk {
    get { self[DiskKey.self] }
    set { self[DiskKey.self] = newValue }
  }

  private enum DiskKey: Key {
    static var defaultValue: Disk { Disk() }
  }
}

// snippet: yield a value before the last one
import Operation

struct SavedForecastQuery: QueryRequest, Hashable {
  let place: String

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Forecast, any Error>
  ) async throws -> Forecast {
    if let saved = await context.disk.savedForecast(place) {
      continuation.yield(saved)
    }
    return try await context.weather.forecast(place)
  }
}
// end

// snippet: display progress
enum Download: Sendable, Equatable {
  case under(percent: Int)
  case done(bytes: [UInt8])
}

func download(
  _ name: String, chunks: @escaping @Sendable () -> AsyncStream<[UInt8]>, size: Int
) -> Query<Download, any Error> {
  Query(path: ["download", name]) { _, continuation in
    var bytes: [UInt8] = []
    for await chunk in chunks() {
      bytes += chunk
      continuation.yield(.under(percent: 100 * bytes.count / max(size, 1)))
    }
    try Task.checkCancellation()
    return .done(bytes: bytes)
  }
}
// end

// snippet: distinguish yielded values from the last one
func printForecasts(for place: String, in client: OperationClient) async throws {
  let store = client.store(for: SavedForecastQuery(place: place))
  try await store.fetch { event in
    switch event {
    case .yielded(.success(let forecast), _): print("saved:", forecast.celsius)
    case .runEnded(.success(let forecast), _): print("new:", forecast.celsius)
    default: break
    }
  }
}
// end
