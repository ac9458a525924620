import Testing

@testable import inspect

@Suite struct ViewTests {
  private var view = TerminalView()
  private let model: InspectorModel

  init() throws {
    model = try Blog.model()
    view.update(model, height: 4)
  }

  private mutating func press(_ keys: Key..., model: InspectorModel? = nil) -> TerminalView.Action?
  {
    var action: TerminalView.Action?
    for key in keys {
      action = view.press(key, model: model ?? self.model, height: 4)
      view.update(model ?? self.model, height: 4)
    }
    return action
  }

  @Test("The selection moves within the rows, and the rows scroll with it") mutating func moving() {
    _ = press(.up)
    #expect(view.selection == 0)
    _ = press(.character("j"), .down, .down, .down)
    #expect(view.selection == 4 && view.scroll == 1)
    _ = press(.end)
    #expect(view.selection == 5 && view.scroll == 2)
    _ = press(.pageUp)
    #expect(view.selection == 2 && view.scroll == 2)
    _ = press(.character("G"), .character("j"), .pageDown)
    #expect(view.selection == 5)
    _ = press(.character("g"))
    #expect(view.selection == 0 && view.scroll == 0)
  }

  @Test("The selection remains on its store when others are added and removed")
  mutating func sameStore() throws {
    _ = press(.end)
    #expect(view.selectedStore == 3)
    var model = model
    model.receive(
      try Blog.message(
        Blog.changes(stores: [Blog.store(9, ["a"], "Q"), Blog.store(8, ["posts", "1"], "Q")])))
    view.update(model, height: 4)
    #expect(view.selectedStore == 3 && view.selection == 7)
    model.receive(try Blog.message(Blog.changes(removed: [3])))
    view.update(model, height: 4)
    #expect(view.selection == 6)
  }

  @Test("The selection is not on a store of the next program that has the same number")
  mutating func nextProgram() throws {
    view = TerminalView()
    view.update(
      try Blog.model([Blog.store(1, ["a"], "Q"), Blog.store(2, ["b"], "Q")]), height: 4)
    _ = view.press(.end, model: model, height: 4)
    #expect(view.selectedStore == 2)
    view.reconnect()
    #expect(view.selectedStore == nil)
    view.update(
      try Blog.model([Blog.store(1, ["a"], "Q"), Blog.store(2, ["z"], "Q")]), height: 4)
    #expect(view.selectedStore == 1)
  }

  @Test("A changed store is sorted anew, and filtered anew") mutating func changedStore() throws {
    _ = press(.character("s"))
    #expect(view.tree.rows[0].label == "posts")
    var model = model
    model.receive(
      try Blog.message(
        Blog.changes(stores: [Blog.store(6, ["authors", "7"], "AuthorQuery", status: "loading")])))
    view.update(model, height: 4)
    #expect(view.tree.rows[0].label == "authors/7")
    _ = press(.character("/"), .character("l"), .character("o"), .character("a"), model: model)
    #expect(view.tree.rows.compactMap(\.store).sorted() == [3, 6])
    model.receive(
      try Blog.message(Blog.changes(stores: [Blog.store(6, ["authors", "7"], "AuthorQuery")])))
    view.update(model, height: 4)
    #expect(view.tree.rows.compactMap(\.store) == [3])
  }

  @Test("Typing filters, Enter keeps the filter and Escape clears it") mutating func filtering() {
    _ = press(.character("/"), .character("5"), .character("0"), .character("q"), .backspace)
    #expect(view.isFiltering && view.options.filter == "50")
    #expect(view.tree.rows.map(\.label) == ["posts/3"])
    #expect(press(.enter) == nil)
    #expect(!view.isFiltering && view.options.filter == "50")
    #expect(press(.escape) == nil && view.options.filter.isEmpty && view.tree.rows.count == 6)
  }

  @Test("Space, left and right fold and unfold, and left selects the parent")
  mutating func folding() {
    _ = press(.down, .down, .character(" "))
    #expect(view.tree.rows.count == 3)
    _ = press(.right, .down, .down, .left)
    #expect(view.tree.rows.count == 6 && view.selection == 2)
    _ = press(.left)
    #expect(view.tree.rows.count == 3)
  }

  @Test("Enter opens a store and Escape closes it") mutating func detail() {
    #expect(press(.down, .enter) == .send(.watch(store: 5)))
    #expect(view.page == .detail(store: 5))
    #expect(press(.character("r")) == .send(.perform(.refetch, store: 5)))
    #expect(press(.escape) == .send(.unwatch) && view.page == .table)
    #expect(view.selection == 1)
  }

  @Test(
    "Letters are commands for the selected store",
    arguments: zip(
      "rixRC", [InspectorCommand.Operation.refetch, .invalidate, .cancel, .reset, .clear]))
  mutating func commands(_ letter: Character, _ operation: InspectorCommand.Operation) {
    #expect(press(.character(letter)) == .send(.perform(operation, store: 6)))
  }

  @Test("Without a store, a connection or permission, a notice replaces the command")
  mutating func refusals() throws {
    var readOnly = InspectorModel()
    readOnly.receive(try Blog.message(Blog.hello(isReadOnly: true, canGoOffline: false)))
    readOnly.receive(try Blog.message(Blog.snapshot))
    #expect(press(.character("i"), model: readOnly) == .redraw)
    #expect(view.notice == "The inspector is read-only.")
    _ = press(.character("o"), model: readOnly)
    #expect(view.notice == "This client has no manual network observer.")
    var ended = model
    ended.end(reason: "")
    #expect(press(.character("i"), model: ended) == .redraw)
    #expect(view.notice == "The program has ended.")
    let grouped = try Blog.model([Blog.store(1, ["a", "b"], "Q"), Blog.store(2, ["a", "c"], "Q")])
    view = TerminalView()
    view.update(grouped, height: 4)
    #expect(press(.character("i"), model: grouped) == nil)
    #expect(view.notice == "Select a store, not a group.")
    #expect(press(.enter, model: grouped) == nil && view.tree.rows.count == 1)
  }

  @Test("Sorting, the flat list, offline, help and quit have keys") mutating func others() {
    _ = press(.character("s"), .character("S"), .character("t"))
    #expect(view.options.order == .status && view.options.isReversed && view.options.isFlat)
    #expect(press(.character("o")) == .send(.offline(true)))
    #expect(press(.character("?")) == nil && view.page == .help(over: .table))
    #expect(press(.character("q")) == nil && view.page == .table)
    #expect(press(.redraw) == .redraw)
    #expect(press(.character("q")) == .quit)
  }

  @Test("The list of keys leads back to the detail, which is watched until it is left")
  mutating func helpInDetail() {
    #expect(press(.enter) == .send(.watch(store: 6)))
    #expect(press(.character("?")) == nil && view.page == .help(over: .detail(store: 6)))
    #expect(press(.character("q")) == nil && view.page == .detail(store: 6))
    #expect(press(.character("q")) == .send(.unwatch) && view.page == .table)
    #expect(press(.character("h"), .escape) == nil && view.page == .table)
  }

  @Test("Keys scroll the list of keys where it is longer than the screen, and others close it")
  mutating func scrolledHelp() throws {
    _ = press(.character("?"), .pageDown, .down)
    #expect(view.helpScroll == 4 && view.page == .help(over: .table))
    let size = TerminalSize(columns: 80, rows: TerminalScreen.frame + 4)
    _ = press(.end)
    let screen = TerminalScreen(model: try Blog.model(), size: size, now: Blog.now)
    #expect(screen.lines(&view)[7].text.hasPrefix("   q   "))
    #expect(view.helpScroll == HelpText.keys.count - 4 && view.scroll == 0)
    _ = press(.escape, .character("?"))
    #expect(view.helpScroll == 0)
    let all = HelpText.keys.count
    #expect(view.press(.down, model: try Blog.model(), height: all) == nil && view.page == .table)
  }

  @Test("Keys scroll a detail from its begin to its end") mutating func scrolling() {
    _ = press(.enter, .down, .character("j"), .pageDown, .character(" "))
    #expect(view.scroll == 8)
    _ = press(.up, .character("k"), .pageUp)
    #expect(view.scroll == 3)
    _ = press(.up, .pageUp)
    #expect(view.scroll == 0)
    _ = press(.character("G"))
    view.limitScroll(lines: 20, height: 4)
    #expect(view.scroll == 16)
    _ = press(.character("G"), .home, .tab, .right)
    #expect(view.scroll == 0 && view.page == .detail(store: 6))
  }

  @Test("The arrows move the selection while a filter is typed") mutating func movingInFilter() {
    #expect(press(.character("/"), .down, .down, .up, .tab, .pageUp) == nil)
    #expect(view.selection == 1 && view.isFiltering && view.options.filter.isEmpty)
    #expect(press(.character("3"), .escape) == nil)
    #expect(!view.isFiltering && view.options.filter.isEmpty && view.tree.rows.count == 6)
  }

  @Test("The selection moves from a group to a row in it when the group has no row any more")
  mutating func lostGroup() throws {
    let stores = [["a"], ["b", "c", "d"], ["b", "c", "e"]].enumerated().map {
      Blog.store($0, $1, "Q")
    }
    var model = try Blog.model(stores)
    view = TerminalView()
    view.update(model, height: 4)
    _ = press(.down, model: model)
    #expect(view.selectedRow?.label == "b/c" && view.selectedStore == nil)
    let added = Blog.store(7, ["a", "a"], "Q")
    model.receive(try Blog.message(Blog.changes(stores: [added], removed: [1])))
    view.update(model, height: 4)
    #expect(view.selectedRow?.label == "b/c/e" && view.selectedStore == 2)
  }

  @Test("Without stores, keys do nothing") mutating func empty() throws {
    let model = try Blog.model([])
    view = TerminalView()
    view.update(model, height: 4)
    let keys: [Key] = [
      .up, .down, .pageUp, .pageDown, .home, .end, .left, .right, .enter, .escape, .backspace, .tab,
      .character(" "), .character("z"),
    ]
    for key in keys { #expect(press(key, model: model) == nil) }
    #expect(view.selection == 0 && view.scroll == 0 && view.page == .table)
    #expect(press(.character("r"), model: model) == nil)
    #expect(view.notice == "Select a store, not a group.")
  }

  @Test("The stores of a snapshot appear in a view that was empty") mutating func firstStores()
    throws
  {
    var model = InspectorModel()
    view = TerminalView()
    model.receive(try Blog.message(Blog.hello()))
    view.update(model, height: 4)
    #expect(view.tree.rows.isEmpty)
    model.receive(try Blog.message(Blog.snapshot))
    view.update(model, height: 4)
    #expect(view.tree.rows.count == 6)
  }

  @Test("A changed store is filtered anew, also in the order of paths")
  mutating func filteredByPath() throws {
    _ = press(.character("/"), .character("l"), .character("o"), .character("a"), .enter)
    #expect(view.options.order == .path && view.tree.rows.compactMap(\.store) == [3])
    var model = model
    let loading = Blog.store(6, ["authors", "7"], "AuthorQuery", status: "loading")
    model.receive(try Blog.message(Blog.changes(stores: [loading])))
    view.update(model, height: 4)
    #expect(view.tree.rows.compactMap(\.store) == [6, 3])
  }

  @Test("A new connection shows its table without a notice") mutating func newConnection() {
    _ = press(.enter)
    view.notice = "The program has ended."
    view.reconnect()
    #expect(view.page == .table && view.notice == nil)
  }

  @Test("A notice ends with the next key, and a page is less than the visible rows")
  mutating func nextKey() {
    view.notice = "reset posts: done"
    #expect(press(.pageDown) == nil)
    #expect(view.notice == nil && view.selection == 3)
  }

  @Test("A detail begins at its first line, and has no filter") mutating func topOfDetail() {
    _ = press(.end)
    #expect(view.scroll == 2)
    #expect(press(.enter) == .send(.watch(store: 3)) && view.scroll == 0)
    #expect(press(.character("/")) == nil && !view.isFiltering)
  }

  @Test("After the last order comes the first one") mutating func orders() {
    for order in StoreTree.Order.allCases {
      #expect(view.options.order == order)
      _ = press(.character("s"))
    }
    #expect(view.options.order == .path)
  }

  @Test("The key for offline leads back online, and is refused when the program has ended")
  mutating func online() throws {
    var model = model
    model.receive(try Blog.message(Blog.changes(isOffline: true)))
    #expect(press(.character("o"), model: model) == .send(.offline(false)))
    model.end(reason: "")
    #expect(press(.character("o"), model: model) == .redraw)
    #expect(view.notice == "The program has ended.")
  }

  @Test("A row with nothing below it is not folded, and neither is a group under a filter")
  mutating func notFolded() {
    _ = press(.character(" "))
    #expect(view.selectedRow?.label == "authors/7" && view.options.folded.isEmpty)
    _ = press(
      .character("/"), .character("p"), .character("o"), .character("s"), .enter, .home, .down)
    #expect(view.selectedRow?.label == "posts" && view.selectedRow?.canFold == true)
    _ = press(.left)
    #expect(view.options.folded.isEmpty)
  }

  @Test("Left selects the group around a folded one") mutating func foldedGroup() throws {
    let paths = [["a", "b", "c"], ["a", "b", "d"], ["a", "e"]]
    let model = try Blog.model(paths.enumerated().map { Blog.store($0, $1, "Q") })
    view = TerminalView()
    view.update(model, height: 9)
    _ = press(.down, .left, model: model)
    #expect(view.selectedRow?.label == "b" && view.selectedRow?.isFolded == true)
    _ = press(.left, model: model)
    #expect(view.selectedRow?.label == "a")
  }
}
