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
  private enum Key: String, CodingKey {
    case isTruncated, rules, calls, pages
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    store = try StoreRecord(from: decoder)
    isTruncated = try fields.decodeIfPresent(Bool.self, forKey: .isTruncated) ?? false
    rules = try fields.decodeIfPresent([Rule].self, forKey: .rules) ?? []
    calls = try fields.decodeIfPresent([Call].self, forKey: .calls) ?? []
    pages = try fields.decodeIfPresent(Int.self, forKey: .pages)
  }
}
