import SharingOperation

/// The places whose names contain a text. It takes a while, like a request to a server.
struct PlacesQuery: SimpleQueryRequest, Hashable {
  let text: String

  func fetch(in context: OperationContext) async throws -> [String] {
    try await context.operationClock.sleep(for: .milliseconds(150))
    return Self.places.filter { $0.lowercased().contains(text.lowercased()) }
  }

  private static let places = [
    "Aarhus", "Amsterdam", "Barcelona", "Berlin", "Bern", "Bordeaux", "Bremen", "Dublin", "Gdańsk",
    "Hamburg", "Helsinki", "København", "Lisboa", "London", "Madrid", "Oslo", "Paris", "Praha",
    "Riga", "Roma", "Stockholm", "Tallinn", "Vilnius", "Warszawa", "Wien", "Zürich",
  ]
}
