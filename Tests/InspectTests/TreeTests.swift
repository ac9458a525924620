import Testing

@testable import inspect

@Suite struct TreeTests {
  private func tree(_ options: StoreTree.Options = .init()) throws -> StoreTree {
    StoreTree(try Blog.model().stores.values, options: options)
  }

  private func labels(_ tree: StoreTree) -> [String] {
    tree.rows.map { String(repeating: " ", count: $0.depth) + $0.label }
  }

  @Test("Stores are below the stores of shorter paths, numbers in their order") func order() throws
  {
    let tree = try tree()
    #expect(labels(tree) == ["authors/7", "create", "posts", " 2", " 3", " 10"])
    #expect(tree.rows[2].store == 1 && tree.rows[2].descendants == 3)
  }

  @Test("A group without a store has a row, and a single child shares its row") func groups() throws
  {
    let stores = [
      Blog.store(1, ["a", "b", "c"], "Q"), Blog.store(2, ["a", "b", "d"], "Q"),
      Blog.store(3, [], "Q"), Blog.store(4, ["a", "b", "d"], "Q"),
    ]
    let tree = StoreTree(try Blog.model(stores).stores.values, options: .init())
    #expect(labels(tree) == ["(no path)", " a/b", "  c", "  d", "  d"])
    #expect(tree.rows.map(\.store) == [3, nil, 1, 2, 4])
    #expect(tree.rows[1].path == ["a", "b"] && tree.rows[1].descendants == 3)
  }

  @Test("A folded row hides those below it, except while a filter is set") func folding() throws {
    var options = StoreTree.Options(folded: [["posts"]])
    #expect(labels(try tree(options)) == ["authors/7", "create", "posts"])
    #expect(try tree(options).rows[2].isFolded)
    options.filter = "posts"
    #expect(labels(try tree(options)) == ["posts", " 2", " 3", " 10"])
  }

  @Test(
    "All words of the filter must occur",
    arguments: [
      ("POSTS 3", [4]), ("503", [4]), ("stale", [2, 4]), ("mutation paused", [5]),
      ("authorquery", [6]), ("posts create", []),
      ("fresh", [1, 6]), ("", [1, 2, 3, 4, 5, 6]),
    ])
  func filter(_ text: String, _ ids: [Int]) throws {
    let rows = try tree(.init(filter: text, isFlat: true)).rows
    #expect(rows.compactMap(\.store).sorted() == ids)
  }

  @Test(
    "A flat list is sorted by each column, both ways",
    arguments: [
      (StoreTree.Order.path, false, [6, 5, 1, 2, 4, 3]), (.path, true, [3, 4, 2, 1, 5, 6]),
      (.status, false, [3, 5, 4, 6, 1, 2]), (.runs, false, [1, 4, 6, 5, 2, 3]),
      (.subscribers, false, [1, 6, 5, 2, 4, 3]), (.age, false, [6, 1, 4, 2, 5, 3]),
    ])
  func sorting(_ order: StoreTree.Order, _ isReversed: Bool, _ ids: [Int]) throws {
    let options = StoreTree.Options(order: order, isReversed: isReversed, isFlat: true)
    #expect(try tree(options).rows.map(\.store) == ids)
  }

  @Test("A group sorts as the first of its stores") func sortedTree() throws {
    #expect(
      labels(try tree(.init(order: .runs))) == ["posts", " 3", " 2", " 10", "authors/7", "create"])
    #expect(
      labels(try tree(.init(order: .path, isReversed: true)))
        == ["posts", " 10", " 3", " 2", "create", "authors/7"])
  }

  @Test("Elements have one order: numbers, texts, and numbers of one value by their characters")
  func oneOrder() throws {
    let elements = ["b", "01", "1", "-2", "a", "001"]
    let stores = elements.enumerated().map { Blog.store($0, ["x", $1], "Q") }
    func labels(_ isReversed: Bool) throws -> [String] {
      let options = StoreTree.Options(isReversed: isReversed)
      return try StoreTree(Blog.model(stores).stores.values, options: options).rows.map(\.label)
    }
    #expect(try labels(false) == ["x", "-2", "001", "01", "1", "a", "b"])
    #expect(try labels(true) == ["x", "b", "a", "1", "01", "001", "-2"])
  }
}
