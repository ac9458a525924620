import Foundation
import Operation
import Testing

/// Compares the tables of bad input with the sources.
@Suite("Bad input: the tables are complete") struct EntriesTests {
  /// The entries without a row, and the reasons.
  private static let elsewhere: [String: String] = [
    "init(defaults:clock:retention:context:storage:)":
      "its arguments were checked where they were made",
    "retained(_:)": "its retention was checked where it was made",
    "init(now:)": "ClockFaultTests.noDate",
    "fetch(using:handler:)": "its configuration is in BadNameTests",
    "runTask(using:)": "its configuration is in BadNameTests",
    "init(path:_:)": "store(for:) in BadPathTests",
    "init(path:failure:_:)": "store(for:) in BadPathTests",
    "init(path:initialPageId:nextPageId:previousPageId:_:)": "BadIdentityTests.pages",
    "init(arrayLiteral:)": "init(_:) in BadPathTests",
    "init(retryLimit:backoff:isDeduplicated:runsAutomatically:mutationRetryLimit:networkMode:"
      + "networkObserver:applicationActivityObserver:memoryPressureSource:staleTime:persistence:setup:)":
      "OperationDefaults.retryLimit in BadNumberTests, PrefixDefaultsTests.negative",
    "init(path:reducingInto:replacingValue:elements:update:)": "store(for:) in BadPathTests",
    "init(path:replacingValue:appending:)": "store(for:) in BadPathTests",
    "init(path:replacingValue:newestOf:)": "store(for:) in BadPathTests",
    "automaticRuns(named:priority:)": "OperationTaskConfiguration.init in BadNameTests",
    "bind(to:debouncedBy:keepingPrevious:)": "DebouncedBindingTests.cancelled",
    "combineLatest(_:buffering:)": "its buffering is that of values(buffering:)",
    "debounce(for:clock:)": "StreamTimeTests",
    "throttle(for:clock:)": "StreamTimeTests",
    "init(delay:maxSize:results:)": "BatchLoaderTests.badNumbers",
    "limited(to:in:)": "LimitedTests.badLimit; its scope is that of serialized(in:)",
    "map(fileID:line:column:_:)": "the compiler passes the place",
    "prefetch(_:pages:)": "PolicyTests.prefetchBadCount",
    "prometheusText(namespace:)": "a name is taken as it is",
    "serveInspector(at:named:readOnly:valueLimit:redacting:)":
      "InspectorSocketTests.refusals and badLimit; a name is shown as it is",
    "init(maxAge:version:)": "SavedValueFailureTests.badAge",
    "init(version:date:data:isInvalidated:)":
      "StorageFormat keeps any version and any date: StorageFormatTests",
    "keys(withPrefix:)": "a key is taken as it is: FileStorageTests.roundTrip",
    "init(pageId:pages:kind:)": "passed to the request as it is: PageRunTests.ownPaging",
    "load(_:)": "a key is taken as it is: FileStorageTests.roundTrip",
    "setAside(_:)": "a key is taken as it is: FileStorageTests.damagedFiles",
    "persisted(as:maxAge:version:)":
      "SavedValueFailureTests.badAge; a name is escaped: StorageKeyTests",
    "persisted(as:maxAge:version:coding:)": "SavedValueFailureTests.badAge",
    "restore(_:from:)": "SavedValueFailureTests.clockWentBack",
    "setDefaults(matching:_:)": "PrefixDefaultsTests.empty",
    "shutdown(within:)": "ShutdownTests.negative",
    "staleIfError(for:)": "WordsTests.badAge",
    "statistics(byPrefixOfLength:)": "StatisticsTests.badLength",
  ]

  /// The types of parameters with values that an entry cannot use.
  private static let types = [
    "Int", "Double", "Duration", "Date", "String", "String?", "OperationPath", "StreamBuffering",
    "ID", "PageID", "OperationRetention", "OperationBackoffFunction", "OperationTaskConfiguration",
    "any Hashable & Sendable", "some Hashable & Sendable", "any Hashable & Sendable...",
    "[any Hashable & Sendable]",
  ]

  private static var rows: [String] {
    BadDurationTests.table.map(\.entry) + BadNumberTests.table.map(\.entry)
      + BadPathTests.table.map(\.entry) + BadIdentityTests.table.map(\.entry)
      + BadNameTests.table.map(\.entry) + BadPositionTests.Entry.allCases.map(\.rawValue)
  }

  @Test("Every public entry that takes a number, a duration, a path, a name or a scope has a row")
  func complete() throws {
    let found = try Set(Self.files().flatMap { Self.entries(in: try Self.text(of: $0)) })
    #expect(found.count > 50, "the search finds the entries")
    let rows = Self.rows
    let missing = found.filter { entry in
      Self.elsewhere[entry] == nil && !rows.contains { $0.contains(entry) }
    }
    #expect(missing.sorted() == [])
    #expect(Self.elsewhere.keys.filter { !found.contains($0) }.sorted() == [])
  }

  private static func files() throws -> [URL] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources")
    let names = try #require(FileManager.default.enumerator(atPath: root.path()))
    return names.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }
      .map { root.appending(path: $0) }
  }

  private static func text(of file: URL) throws -> String {
    try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
      .filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: " ")
  }

  /// Returns the names, with labels, of the public functions with a parameter of these types.
  private static func entries(in text: String) -> [String] {
    let start = /public (?:static |mutating )*(?:func (\w+)|(init|subscript))(?:<[^(]*>)?\(/
    return text.matches(of: start).compactMap { match in
      let name = String(match.output.1 ?? match.output.2 ?? "")
      let parameters = parameters(text[match.range.upperBound...])
      guard parameters.contains(where: { types.contains($0.type) }) else { return nil }
      let isSubscript = name == "subscript"
      return name + "(" + parameters.map { label($0.names, isSubscript) + ":" }.joined() + ")"
    }
  }

  private static func label(_ names: Substring, _ isSubscript: Bool) -> String {
    let words = names.split(separator: " ")
    return isSubscript && words.count == 1 ? "position" : String(words.first ?? "_")
  }

  /// Returns the parameters of a list up to its closing parenthesis.
  private static func parameters(_ text: Substring) -> [(names: Substring, type: String)] {
    var parts: [Substring] = []
    var (depth, start) = (0, text.startIndex)
    for index in text.indices {
      let isEnd = text[index] == ")" && depth == 0
      if isEnd || (text[index] == "," && depth == 0) {
        parts.append(text[start..<index])
        start = text.index(after: index)
      }
      if isEnd { break }
      if "([{<".contains(text[index]) { depth += 1 }
      if ")]}".contains(text[index]) || (text[index] == ">" && !text[..<index].hasSuffix("-")) {
        depth -= 1
      }
    }
    return parts.compactMap { part in
      guard let colon = part.firstIndex(of: ":") else { return nil }
      let type = part[part.index(after: colon)...].split(separator: " = ").first ?? ""
      return (part[..<colon], type.trimmingCharacters(in: .whitespaces))
    }
  }
}
