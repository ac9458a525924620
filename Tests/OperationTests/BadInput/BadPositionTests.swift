import Operation
import Testing

/// Positions outside of a collection. As with an array, the documentation requires a valid
/// position, and the program ends otherwise.
@Suite("Bad input: positions", .timeLimit(.minutes(5))) struct BadPositionTests {
  enum Entry: String, CaseIterable, Codable, Sendable {
    case element = "IdentifiedArray.subscript(position:)"
    case replacedElement = "IdentifiedArray.subscript(position:), set"
    case removedElement = "IdentifiedArray.remove(at:)"
    case pathElement = "OperationPath.subscript(position:)"
    case store = "OperationStoreCollection.subscript(position:)"

    func use(_ position: Int) {
      var items: IdentifiedArrayOf<Item> = [Item(id: 1), Item(id: 2)]
      switch self {
      case .element: _ = items[position]
      case .replacedElement: items[position] = Item(id: 3)
      case .removedElement: items.remove(at: position)
      case .pathElement: _ = (["a", 1] as OperationPath)[position]
      case .store:
        let client = OperationClient(defaults: .testing)
        for id in 0..<2 { _ = client.store(for: OpenQuery(script: Script(), path: [id])) }
        _ = client.stores(matching: [])[position]
      }
    }
  }

  struct Item: Identifiable {
    let id: Int
  }

  @Test(
    "A position outside of the collection ends the program",
    arguments: Entry.allCases, [-1, 2, Int.max, Int.min])
  func outside(entry: Entry, position: Int) async {
    await #expect(processExitsWith: .failure) { [entry, position] in entry.use(position) }
  }

  @Test("A position inside of the collection is accepted", arguments: Entry.allCases, [0, 1])
  func inside(entry: Entry, position: Int) {
    entry.use(position)
  }
}
