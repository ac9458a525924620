/// Returns the first thousand characters of the debug description of a value, without what differs from process
/// to process: the addresses that Swift writes into the names of private types, and the order of a set or dictionary,
/// unless that is a part of another value.
package func describe(_ value: some Any) -> String {
  // A cast finds the content of an optional, too.
  let list = value is any OptionalValue ? nil : value as? any UnorderedCollection
  let text = list?.sortedDescription ?? String(reflecting: value).withoutAddresses
  let end = text.index(text.startIndex, offsetBy: 1_000, limitedBy: text.endIndex) ?? text.endIndex
  return end == text.endIndex ? text : text[..<end] + "…"
}

extension String {
  /// A debug description without the addresses in the names of private types.
  var withoutAddresses: String {
    // Most descriptions have none, and the search for the pattern is slow.
    guard utf8.contains(UInt8(ascii: "$")) else { return self }
    return replacing(#/\(unknown context at \$[0-9a-f]+\)\./#, with: "")
  }
}

private protocol UnorderedCollection {
  /// The debug description, with the elements in the order of theirs.
  var sortedDescription: String { get }
}

extension Set: UnorderedCollection {
  var sortedDescription: String { "Set(\(sortedList(map { describe($0) })))" }
}

extension Dictionary: UnorderedCollection {
  var sortedDescription: String {
    isEmpty ? "[:]" : sortedList(map { "\(describe($0)): \(describe($1))" })
  }
}

private func sortedList(_ list: [String]) -> String { "[\(list.sorted().joined(separator: ", "))]" }

/// Returns a name, and in parentheses the parts that are not `nil`.
package func describe(as name: String, _ parts: String?...) -> String {
  "\(name)(\(parts.compactMap { $0 }.joined(separator: ", ")))"
}

/// Returns a success or a failure with its value or error.
package func describe(_ result: Result<some Any, some Error>) -> String {
  switch result {
  case .success(let value): "success(\(describe(value)))"
  case .failure(let error): "failure(\(describe(error)))"
  }
}
