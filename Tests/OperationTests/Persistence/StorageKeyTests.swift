import FoundationEssentials
import Testing

@testable import Operation

/// A structure that is an element of a path.
struct StableQuery: Hashable {
  var user = 7
  var name: String? = "a/b"
}

enum StableKind: Hashable {
  case open
  case limited(to: Int)
}

enum StableName: String {
  case first = "1st"
}

private struct PrivateQuery: Hashable {}

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
    #expect(key([1, 2], Set([3, 1, 2])) == "values/[1, 2]/[1, 2, 3]")
  }

  @Test("Different elements have different keys")
  func distinct() {
    let keys = [
      key("a", "b"), key("a/b"), key("3"), key(3), key(Int8(3)), key(3.0), key(Optional("a")),
      key("a"),
      key("nil"), key(String?.none), key("\"3\""), key(true), key("true"), key(["a"]), key("[a]"),
      key(StableQuery()), key(StableQuery(user: 8)), key(StableQuery(name: nil)),
    ]
    #expect(keys.allSatisfy { $0 != nil })
    #expect(Set(keys).count == keys.count)
  }

  @Test("A private type and an object have no stable form")
  func unstable() {
    final class Object: Hashable, Sendable {
      static func == (lhs: Object, rhs: Object) -> Bool { lhs === rhs }
      func hash(into hasher: inout Hasher) {}
    }
    #expect(key(PrivateQuery()) == nil)
    #expect(key("a", Object()) == nil)
    #expect(key([PrivateQuery()]) == nil)
  }

  @Test("A prefix covers its path and those below it, and no others")
  func prefixes() {
    #expect(StorageKey.isKey("values/a/b", below: "values/a"))
    #expect(StorageKey.isKey("values/a", below: "values/a"))
    #expect(!StorageKey.isKey("values/ab", below: "values/a"))
    #expect(StorageKey.isKey("values/=x", below: "values/"))
    #expect(!StorageKey.isKey("calls/1", below: "values/"))
  }
}
