/// A store with all that a program reports about the one that is watched.
struct StoreDetail: Equatable, Sendable {
  var store: StoreRecord
  /// Whether the value was longer than the program sends.
  var isTruncated = false
  var rules: [Rule] = []
  /// The latest calls of a mutation.
  var calls: [Call] = []
  /// The number of pages; `nil` for a store without pages.
  var pages: Int?

  /// A setting of the request, such as the duration after which its value is stale.
  struct Rule: Equatable, Sendable, Decodable {
    var name: String
    var value: String
  }

  struct Call: Equatable, Sendable, Decodable {
    var arguments: String
    var status: String
  }
}

extension StoreDetail: Decodable {
  init(from decoder: any Decoder) throws {
    let fields = try MessageFields(decoder)
    store = try StoreRecord(from: decoder)
    isTruncated = try fields("isTruncated") ?? false
    rules = try fields("rules") ?? []
    calls = try fields("calls") ?? []
    pages = try fields("pages")
  }
}
