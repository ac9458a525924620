/// Describes values as text for the peers. It calls code of the user, and so is used with no lock held.
struct InspectorDescriber: Sendable {
  /// The length of a text in a list, in bytes of UTF-8.
  static let shortLimit = 120

  /// The length of the longest text, in bytes of UTF-8.
  let limit: Int
  let redacting: (@Sendable (_ path: OperationPath, _ description: String) -> String?)?

  /// Returns the description of a value for a list.
  func short(_ value: Any, at path: OperationPath) -> String {
    // The closure gets the text before it is shortened: it may not recognise a secret whose end is cut off.
    let description = Self.describe(value, limit: redacting == nil ? 4 * Self.shortLimit : limit)
    return text(description.text, at: path)
  }

  /// Returns a description for a list, redacted and truncated.
  func text(_ description: String, at path: OperationPath) -> String {
    redacted(description, at: path).truncated(to: min(limit, Self.shortLimit)).text
  }

  /// Returns the description of a value up to the limit.
  func full(_ value: Any, at path: OperationPath) -> (text: String, isTruncated: Bool) {
    let (text, isTruncated) = Self.describe(value, limit: limit)
    let redacted = redacted(text, at: path).truncated(to: limit)
    return (redacted.text, isTruncated || redacted.isTruncated)
  }

  private func redacted(_ text: String, at path: OperationPath) -> String {
    guard let redacting else { return text }
    return redacting(path, text) ?? "hidden"
  }

  /// Returns the debug description of a value, or of what an optional contains. Of a long one, no more
  /// than the limit is stored.
  static func describe(_ value: Any, limit: Int) -> (text: String, isTruncated: Bool) {
    var stream = BoundedStream(limit: limit)
    var content = (value as? any OptionalValue)?.content ?? value
    if let list = content as? any DescribedList, list.count > limit {
      content = list.prefix(limit).map { $0 as Any }
    }
    debugPrint(content, terminator: "", to: &stream)
    return (stream.text.withoutAddresses, stream.isTruncated)
  }
}

/// A list whose description begins with those of its elements. Each of these has at least one byte, so as
/// many elements as the limit are enough.
private protocol DescribedList: Collection {}
extension Array: DescribedList {}
extension IdentifiedArray: DescribedList {}

/// A text that stops to grow.
private struct BoundedStream: TextOutputStream {
  let limit: Int
  private(set) var text = ""
  private(set) var isTruncated = false

  mutating func write(_ string: String) {
    if isTruncated { return }
    let (part, isCut) = string.truncated(to: limit - text.utf8.count)
    text += part
    isTruncated = isCut
  }
}

extension String {
  /// Returns the beginning of at most some bytes of UTF-8. A string ends at a scalar: the index of a part
  /// of one is rounded down.
  fileprivate func truncated(to limit: Int) -> (text: String, isTruncated: Bool) {
    guard utf8.count > limit else { return (self, false) }
    return (String(self[..<utf8.index(startIndex, offsetBy: max(limit, 0))]), true)
  }
}
