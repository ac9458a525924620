import FoundationEssentials
import Testing

@testable import Operation

@Suite("The format of an entry's file")
struct StorageFormatTests {
  @Test(
    "Any key, version, date and data are restored exactly",
    arguments: [
      ("", 0, 0.0, 0), ("a\nb", .min, -1.5e300, 1), ("\u{1F600} =", .max, 1e-300, 4_096),
      ("checksum=1", 7, 785_788_732.1234567, 3),
    ])
  func exact(key: String, version: Int, seconds: Double, count: Int) throws {
    for isInvalidated in [false, true] {
      let entry = StorageEntry(
        version: version, date: Date(timeIntervalSinceReferenceDate: seconds),
        data: Data(repeating: 10, count: count), isInvalidated: isInvalidated)
      let (found, decoded) = try StorageFormat.decode(
        StorageFormat.encode(entry, for: key), of: "", in: "")
      #expect(found == key)
      #expect(decoded == entry)
    }
  }

  @Test("The header of an invalidated value says so")
  func invalidated() {
    for isInvalidated in [false, true] {
      let entry = StorageEntry(
        version: 1, date: Date(timeIntervalSinceReferenceDate: 1), data: Data(),
        isInvalidated: isInvalidated)
      let text = String(decoding: StorageFormat.encode(entry, for: "key"), as: UTF8.self)
      #expect(text.contains(" key=3 data=0 invalidated=1 checksum=") == isInvalidated)
    }
  }

  @Test("Every change of a single byte is detected")
  func eachByte() throws {
    let entry = StorageEntry(
      version: 1, date: Date(timeIntervalSinceReferenceDate: 1), data: Data("value".utf8))
    let bytes = StorageFormat.encode(entry, for: "key")
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 0x11
      let decoded = try? StorageFormat.decode(changed, of: "", in: "")
      #expect(decoded == nil, "byte \(index)")
    }
  }

  @Test("Every truncated file is detected")
  func eachLength() throws {
    let entry = StorageEntry(
      version: 1, date: Date(timeIntervalSinceReferenceDate: 1), data: Data("value".utf8))
    let bytes = StorageFormat.encode(entry, for: "key")
    for count in 0..<bytes.count {
      let decoded = try? StorageFormat.decode(bytes.prefix(count), of: "", in: "")
      #expect(decoded == nil, "\(count) bytes")
    }
  }

  @Test("A header with a negative length is not complete, also if its checksum is right")
  func negativeLength() {
    var checksum = Checksum()
    let fields = "swift-operation entry format=1 version=0 date=0.0 (1) key=-1 data=5"
    checksum.add(fields.utf8)
    checksum.add("data".utf8)
    let bytes = Data("\(fields) checksum=\(checksum)\ndata".utf8)
    let error = #expect(throws: StorageError.self) {
      try StorageFormat.decode(bytes, of: "a", in: "file")
    }
    #expect(error == .damaged(key: "a", file: "file", reason: "its header is not complete"))
  }
}
