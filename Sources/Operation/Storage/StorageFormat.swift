import FoundationEssentials

/// The bytes of one entry's file: a line that a person can read, the key, and the data.
///
/// ```
/// swift-operation entry format=1 version=2 date=785788732.5 (2025-11-25T17:38:52Z) key=12 data=345 checksum=…
/// ```
///
/// The header of an invalidated value has `invalidated=1`, too. The date is in seconds since 2001, which restores
/// it exactly. The checksum is over all of the file but itself, so that a file that was torn or changed is noticed.
struct StorageFormat {
  static let format = 1
  /// A longer header is none of ours.
  private static let longestHeader = 512
  private static let name = "swift-operation entry"

  static func encode(_ entry: StorageEntry, for key: String) -> Data {
    let seconds = entry.date.timeIntervalSinceReferenceDate
    let day = entry.date.formatted(.iso8601)
    let invalidated = entry.isInvalidated ? " invalidated=1" : ""
    let fields =
      "\(name) format=\(format) version=\(entry.version) date=\(seconds) (\(day)) "
      + "key=\(key.utf8.count) data=\(entry.data.count)\(invalidated)"
    var checksum = Checksum()
    checksum.add(fields.utf8)
    checksum.add(key.utf8)
    checksum.add(entry.data)
    var bytes = Data("\(fields) checksum=\(checksum)\n\(key)".utf8)
    bytes.append(entry.data)
    return bytes
  }

  /// Returns the key and the entry of a file, which was read for `key`.
  static func decode(
    _ bytes: Data, of key: String, in file: String
  ) throws(StorageError) -> (key: String, entry: StorageEntry) {
    func damaged(_ reason: String) -> StorageError {
      .damaged(key: key, file: file, reason: reason)
    }
    guard let end = bytes.prefix(longestHeader).firstIndex(of: UInt8(ascii: "\n")),
      let line = String(bytes: bytes[..<end], encoding: .utf8), line.hasPrefix(name + " format=")
    else { throw damaged("it does not begin with a header") }
    let format = number(of: "format", in: line)
    if let format, format > Self.format { throw .tooNew(key: key, file: file, format: format) }
    guard format == Self.format, let version = number(of: "version", in: line),
      let date = field("date", of: line).flatMap(Double.init),
      let keyCount = number(of: "key", in: line), let dataCount = number(of: "data", in: line),
      keyCount >= 0, dataCount >= 0, let expected = field("checksum", of: line),
      let fields = line.firstRange(of: " checksum=")
    else { throw damaged("its header is not complete") }
    let body = bytes[(end + 1)...]
    // Subtracted: a sum of two numbers of a file could be too large.
    guard body.count >= keyCount, body.count - keyCount == dataCount else {
      throw damaged(
        "it has \(body.count) bytes behind the header, not \(keyCount) and \(dataCount)")
    }
    var checksum = Checksum()
    checksum.add(line[..<fields.lowerBound].utf8)
    checksum.add(body)
    guard "\(checksum)" == expected,
      let found = String(validating: body.prefix(keyCount), as: UTF8.self)
    else { throw damaged("its checksum is another one") }
    let entry = StorageEntry(
      version: version, date: Date(timeIntervalSinceReferenceDate: date),
      data: Data(body.dropFirst(keyCount)), isInvalidated: number(of: "invalidated", in: line) == 1)
    return (found, entry)
  }

  private static func field(_ name: String, of line: String) -> String? {
    let fields = line.split(separator: " ").lazy.filter { $0.hasPrefix("\(name)=") }
    return fields.first.map { String($0.dropFirst(name.utf8.count + 1)) }
  }

  private static func number(of name: String, in line: String) -> Int? {
    field(name, of: line).flatMap { Int($0) }
  }
}

/// The 64-bit FNV-1a hash of bytes (RFC 9923), which is the same in every process.
struct Checksum: CustomStringConvertible {
  private var value: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func add(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 }
  }

  /// Sixteen hexadecimal digits.
  var description: String { String(value, radix: 16).padded(toLength: 16) }
}

extension String {
  /// Returns the digits of a number, with zeros before them up to a length.
  func padded(toLength length: Int) -> String {
    String(repeating: "0", count: max(0, length - utf8.count)) + self
  }
}
