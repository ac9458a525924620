/// The fields of a JSON object by their names. A program of another version may leave some out.
struct MessageFields {
  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  private let container: KeyedDecodingContainer<Name>

  init(_ decoder: any Decoder) throws { container = try decoder.container(keyedBy: Name.self) }

  /// Returns a field that every program sends.
  func required<Value: Decodable>(_ name: String) throws -> Value {
    try container.decode(Value.self, forKey: Name(stringValue: name))
  }

  /// Returns a field, or `nil` if it is missing.
  func callAsFunction<Value: Decodable>(_ name: String) throws -> Value? {
    try container.decodeIfPresent(Value.self, forKey: Name(stringValue: name))
  }

  /// Returns seconds since 1970, within some ten thousand years, so that all arithmetic is exact.
  func time(_ name: String) throws -> Double? {
    let time: Double? = try self(name)
    return time.flatMap { $0.isNaN ? nil : min(max($0, -1e12), 1e12) }
  }
}
