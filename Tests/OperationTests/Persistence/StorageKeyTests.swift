import FoundationEssentials
import Testing

@testable import Operation

/// A structure that is an element of a path.
struct StableQuery: Hashable {
  var user = 7
  var name: String? = "a/b"
}

struct StableLists: Hashable {
  var names: [String] = []
  var parent: Int?
}

enum StableKind: Hashable {
  case open
  case limited(to: Int)
}

enum StableName: String {
  case first = "1st"
}

private struct PrivateQuery: Hashable {}

/// A structure with a member that has no stable form.
struct PrivateOwner: Hashable { private var query = PrivateQuery() }

private enum PrivateCase: Hashable {
  case none
  case one(Int)
}

/// An enumeration whose cases describe themselves in the same way.
enum DescribedCase: CustomStringConvertible {
  case one
  case two

  var description: String { "case" }
}

/// A structure that hides in a reflection what distinguishes it.
struct ReflectedQuery: Hashable, CustomReflectable {
  var user: Int

  var customMirror: Mirror { Mirror(self, children: [:], displayStyle: .struct) }
}

@Suite("Keys of saved values")
struct StorageKeyTests {
  private func key(_ elements: any Hashable & Sendable...) -> String? {
    StorageKey.value(at: OperationPath(elements))
  }

  @Test("The form of an element is the same in every process")
  func forms() {
    let module = String(reflecting: StableQuery.self).prefix { $0 != "." }
    #expect(key() == "values/")
    #expect(key("posts", 3) == "values/posts/3")
    #expect(key("3", "true", "", "a/b") == #"values/"3"/"true"/""/a%2fb"#)
    #expect(key(true, Int8(3), 1.5) == "values/true/3:Int8/1.5:Double")
    #expect(key("ä b") == "values/%c3%a4 b" || key("ä b") == #"values/"%c3%a4 b""#)
    #expect(key(StableQuery()) == "values/\(module).StableQuery(user: 7, name: a%2fb?)")
    #expect(key(StableKind.open) == "values/\(module).StableKind.open")
    #expect(key(StableKind.limited(to: 2)) == "values/\(module).StableKind.limited((to: 2))")
    #expect(key(StableName.first) == #"values/\#(module).StableName."1st""#)
    #expect(key([1, 2]) == "values/[1, 2]:Swift.Array<Swift.Int>")
    #expect(key(Set([3, 1, 2])) == "values/[1, 2, 3]:Swift.Set<Swift.Int>")
    #expect(key(StableLists()) == "values/\(module).StableLists(names: [], parent: nil)")
    let uuid = "6F9619FF-8B86-D011-B42D-00CF4FC964FF"
    #expect(key(UUID(uuidString: uuid)) == "values/#\(uuid)?")
    #expect(key(URL(string: "file:///a")) == "values/<file%3a%2f%2f%2fa>?")
    #expect(key(Character("a"), "a\nb") == "values/'a'/a%0ab")
  }

  @Test("Different elements have different keys")
  func distinct() {
    let keys = [
      key("a", "b"), key("a/b"), key("3"), key(3), key(Int8(3)), key(3.0), key(Optional("a")),
      key("a"),
      key("nil"), key(String?.none), key("\"3\""), key(true), key("true"), key(["a"]), key("[a]"),
      key(StableQuery()), key(StableQuery(user: 8)), key(StableQuery(name: nil)),
      key([1]), key(Set([1])), key(ContiguousArray([1])), key([Int]()), key([String]()),
      key(Int?.none), key(Int??.some(nil)), key([1: 2]), key(Optional([1])),
      key(Optional(Set([1]))), key(Optional(ContiguousArray([1]))),
      key(Data(base64Encoded: "abc/defg")), key("abc", Data(base64Encoded: "defg")),
      key(Character("a")), key(URL(string: "a")), key("x\n"), key("x%0a"),
      key(URL(string: "http://a/b")),
      key(URL(string: "b", relativeTo: URL(string: "http://a/"))),
      key(URL(string: "b", relativeTo: URL(string: "http://a/c"))),
    ]
    #expect(keys.allSatisfy { $0 != nil })
    #expect(Set(keys).count == keys.count)
  }

  @Test("The two zeros of a floating-point number, which are equal, have one key")
  func zeros() {
    #expect(key(0.0) == "values/0.0:Double")
    #expect(key(-0.0) == key(0.0))
    #expect(key([-0.0]) == key([0.0]))
    #expect(
      key(Date(timeIntervalSinceReferenceDate: -0.0))
        == key(Date(timeIntervalSinceReferenceDate: 0)))
  }

  @Test("The bytes of an element are no elements of their own")
  func slashes() throws {
    let bytes = try #require(Data(base64Encoded: "abc/defg"))
    let saved = try #require(key(bytes))
    #expect(!StorageKey.isKey(saved, below: "values/abc"))
  }

  @Test("A private type and an object have no stable form")
  func unstable() {
    final class Object: Hashable, Sendable {
      static func == (lhs: Object, rhs: Object) -> Bool { lhs === rhs }
      func hash(into hasher: inout Hasher) {}
    }
    #expect(key(PrivateQuery()) == nil)
    #expect(key("a", Object()) == nil)
    #expect(key(PrivateOwner()) == nil)
    #expect(key([PrivateQuery()]) == nil)
    #expect(key([PrivateQuery]()) == nil)
    #expect(key(PrivateCase.one(1)) == nil && key(PrivateCase.none) == nil)
  }

  @Test("A type that describes or reflects itself has no stable form")
  func ownForms() {
    #expect(key(DescribedCase.one) == nil && key(DescribedCase.two) == nil)
    #expect(key(ReflectedQuery(user: 1)) == nil)
  }

  @Test("A prefix covers its path and those below it, and no others")
  func prefixes() {
    #expect(StorageKey.isKey("values/a/b", below: "values/a"))
    #expect(StorageKey.isKey("values/a", below: "values/a"))
    #expect(!StorageKey.isKey("values/ab", below: "values/a"))
    #expect(StorageKey.isKey("values/=x", below: "values/"))
    #expect(!StorageKey.isKey("calls/1", below: "values/"))
  }

  @Test("A storage in memory returns the keys with a prefix in their order")
  func sortedKeys() async throws {
    let entry = StorageEntry(version: 0, date: Date(timeIntervalSince1970: 0), data: Data())
    let keys = (10..<30).map { "values/\($0)" }
    let entries = Dictionary(uniqueKeysWithValues: (keys + ["calls/1"]).map { ($0, entry) })
    #expect(try await MemoryStorage(entries).keys(withPrefix: "values/") == keys)
  }

  @Test(
    "The prefixes of a key are those that it is below",
    arguments: ["values/", "values/a", "values/a/b", "values/a/bc/d", "calls/1", ""])
  func prefixes(key: String) {
    let parts = ["values/a", "values/a/", "values/a/b", "values/a/bc", "values/a/bc/d"]
    for prefix in parts + ["values/", "values", "calls", "calls/1", ""] {
      let isFound = StorageKey.prefixes(of: key).contains(prefix)
      #expect(isFound == StorageKey.isKey(key, below: prefix), "\(key) \(prefix)")
    }
  }
}
