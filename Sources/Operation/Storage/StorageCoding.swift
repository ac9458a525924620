public import FoundationEssentials

/// The encoding of saved values: two functions.
public struct StorageCoding<Value: Sendable>: Sendable {
  let encode: @Sendable (Value) throws -> Data
  let decode: @Sendable (Data) throws -> Value
  var migrate: (@Sendable (_ data: Data, _ version: Int) throws -> Value?)?

  /// Creates an encoding.
  ///
  /// - Parameters:
  ///   - encode: Returns the bytes of a value. It is called on no actor, with no lock held.
  ///   - decode: Returns the value of bytes.
  public init(
    encode: @escaping @Sendable (Value) throws -> Data,
    decode: @escaping @Sendable (Data) throws -> Value
  ) {
    self.encode = encode
    self.decode = decode
  }

  /// Returns the encoding with a closure that decodes the bytes of earlier versions.
  ///
  /// - Parameter migrate: Returns the value of bytes and their version, which is lower than that of the
  ///   request; `nil` drops them. What it throws is reported, and the entry is set aside. A call of a
  ///   mutation for which it returns `nil` or throws is reported, and stays in the outbox.
  public func migrating(
    _ migrate: @escaping @Sendable (_ data: Data, _ version: Int) throws -> Value?
  ) -> StorageCoding {
    var coding = self
    coding.migrate = migrate
    return coding
  }

  /// Returns the value of bytes; `nil` if those of an earlier version are dropped.
  ///
  /// - Parameters:
  ///   - saved: The version of the bytes.
  ///   - expected: The version of the request.
  /// - Throws: What the closures throw, or an error for bytes of a later version.
  func value(of data: Data, version saved: Int, expected: Int) throws -> Value? {
    if saved == expected { return try decode(data) }
    if saved < expected { return try migrate?(data, saved) ?? nil }
    throw PersistenceError.otherVersion(saved: saved, expected: expected)
  }

  /// Returns the encoding as JSON for a value whose type is `Codable`, which only its store knows.
  static func ifCodable() -> StorageCoding? { Value.self is any Codable.Type ? dynamicJSON : nil }

  /// JSON, with sorted keys, for a value whose type is `Codable`, which the compiler need not know.
  private static var dynamicJSON: StorageCoding {
    StorageCoding { value in
      guard let value = value as? any Encodable else {
        throw PersistenceError.otherType(Value.self)
      }
      let encoder = JSONEncoder()
      // So that equal values have equal files, which a person can compare.
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return try encoder.encode(value)
    } decode: { data in
      guard let type = Value.self as? any Decodable.Type,
        let value = try JSONDecoder().decode(type, from: data) as? Value
      else { throw PersistenceError.otherType(Value.self) }
      return value
    }
  }
}

/// An encoding of values whose type only the request knows.
protocol ErasedStorageCoding: Sendable {
  func encode(any value: any Sendable) throws -> Data
}

extension StorageCoding: ErasedStorageCoding {
  func encode(any value: any Sendable) throws -> Data {
    guard let value = value as? Value else { throw PersistenceError.otherType(Value.self) }
    return try encode(value)
  }
}

extension StorageCoding where Value: Codable {
  /// JSON, with sorted keys.
  public static var json: StorageCoding { dynamicJSON }
}

/// A reason why something cannot be saved or restored.
enum PersistenceError: Error, CustomStringConvertible {
  case otherType(any Any.Type)
  case otherVersion(saved: Int, expected: Int)

  var description: String {
    switch self {
    case .otherType(let type): "Its type is \(type)."
    case .otherVersion(let saved, let expected):
      "It has the version \(saved), and the request expects \(expected)."
    }
  }
}
