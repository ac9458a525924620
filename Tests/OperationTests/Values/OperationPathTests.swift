import Operation
import Testing

@Suite("OperationPath") struct OperationPathTests {
  private struct UserID: Hashable, Sendable { let number: Int }

  @Test("A literal takes elements of any hashable types")
  func literals() {
    let path: OperationPath = ["user", 7, 1.5, UserID(number: 3), true]
    #expect(path.count == 5)
    #expect(path[0].value as? String == "user")
    #expect(path[3].value as? UserID == UserID(number: 3))
    #expect(OperationPath().isEmpty)
    #expect(OperationPath("user") == ["user"])
    #expect(OperationPath(["user", 7]) == ["user", 7])
    let names = ["a", "b"]
    #expect(OperationPath(["a", "b"]) == ["a", "b"] && OperationPath(names) == ["a", "b"])
  }

  @Test("Elements are equal when both their types and their values are")
  func elementEquality() {
    let int: OperationPath = ["a", 1]
    #expect(int == ["a", 1])
    #expect(int != ["a", 2])
    #expect(int != ["a", 1.0])
    #expect(int != ["a", Int64(1)])
    #expect(int != ["a", UInt(1)])
    #expect(int != ["a", "1"])
    #expect(int != ["a", Optional(1)])
    #expect(OperationPath(Optional<Int>.none) == OperationPath(Optional<Int>.none))
    #expect(OperationPath(Optional<Int>.none) != OperationPath(Optional<String>.none))
    #expect(OperationPath("a") != OperationPath(Substring("a")))
  }

  @Test("A path never equals one that only begins with it")
  func lengthCounts() {
    let short: OperationPath = ["a"]
    #expect(short != ["a", "b"])
    #expect(short != [])
    #expect(OperationPath(["a", "b"]) != OperationPath(["b", "a"]))
    #expect(OperationPath(OperationPath(["a", "b"])) != ["a", "b"])
  }

  @Test("Equal paths have equal hashes, however they were created")
  func hashing() {
    var appended: OperationPath = ["a"]
    appended.append(1)
    appended.append(UserID(number: 2))
    let ways: [OperationPath] = [
      ["a", 1, UserID(number: 2)],
      OperationPath(["a", 1, UserID(number: 2)]),
      OperationPath("a").appending(1).appending(UserID(number: 2)),
      OperationPath("a").appending(OperationPath([1, UserID(number: 2)])),
      OperationPath().appending(["a", 1, UserID(number: 2)] as OperationPath),
      appended,
    ]
    for path in ways {
      #expect(path == ways[0])
      #expect(path.hashValue == ways[0].hashValue)
    }
    #expect(Set(ways).count == 1)
  }

  @Test("Ten thousand paths that differ in one number are all distinct")
  func manyPaths() {
    let paths = Set((0..<10_000).map { OperationPath(["post", $0]) })
    #expect(paths.count == 10_000)
    #expect(Set(paths.map(\.hashValue)).count > 9_990)
    let isFound = paths.contains(["post", 9_999])
    let isOtherFound = paths.contains(["post", Int64(9_999)])
    #expect(isFound && !isOtherFound)
  }

  @Test("A path has itself and the empty path as prefixes, and no longer path")
  func prefixes() {
    let path: OperationPath = ["a", 1, "b"]
    #expect(OperationPath().isPrefix(of: path))
    #expect(OperationPath().isPrefix(of: []))
    #expect(path.isPrefix(of: path))
    #expect(OperationPath(["a", 1]).isPrefix(of: path))
    #expect(!OperationPath(["a", 1.0]).isPrefix(of: path))
    #expect(!OperationPath([1, "b"]).isPrefix(of: path))
    #expect(!path.isPrefix(of: ["a", 1]))
    #expect(!path.isPrefix(of: []))
  }

  @Test("An element of a path stands for its value in another one")
  func elementsOfPaths() {
    let path: OperationPath = ["posts", 3, UserID(number: 1), "comments"]
    let parent = OperationPath(Array(path.dropLast()))
    #expect(parent == ["posts", 3, UserID(number: 1)] && parent.isPrefix(of: path))
    #expect(parent.appending(path[3]) == path && OperationPath(path[0]) == ["posts"])
    #expect(parent[2].value is UserID && path[1] ~= path[1])
  }

  @Test("Appending adds one element, or all those of a path")
  func appending() {
    let base: OperationPath = ["a"]
    #expect(base.appending("b") == ["a", "b"])
    #expect(base.appending(["b", 1] as OperationPath) == ["a", "b", 1])
    #expect(base == ["a"])
    var changed = base
    changed.append("b")
    changed.append([2, 3] as OperationPath)
    #expect(changed == ["a", "b", 2, 3])
  }

  @Test("A path is a collection of its elements")
  func collection() {
    let path: OperationPath = ["a", "b", "c"]
    #expect(path.compactMap { $0.value as? String } == ["a", "b", "c"])
    #expect(path.reversed().first?.value as? String == "c")
    #expect(path.indices == 0..<3)
    #expect(path.last == OperationPath("c")[0])
    #expect(path.elements.count == path.count)
  }

  @Test("The description reads as a literal")
  func description() {
    #expect(OperationPath(["a", 1, 1.5]).description == #"["a", 1, 1.5]"#)
    #expect(OperationPath().description == "[]")
  }
}
