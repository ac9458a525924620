/// The size of a terminal in characters.
struct TerminalSize: Equatable, Sendable {
  var columns = 80
  var rows = 24
}

/// What the terminal form shows of a model, and how keys change it.
struct TerminalView: Equatable, Sendable {
  enum Page: Equatable, Sendable {
    case table
    case detail(store: Int)
    /// The list of keys, over the page that follows it.
    indirect case help(over: Page)
  }

  /// What the program does after a key.
  enum Action: Equatable, Sendable {
    case quit
    case redraw
    case send(InspectorCommand)
  }

  private(set) var page = Page.table
  private(set) var options = StoreTree.Options()
  private(set) var tree = StoreTree()
  /// The index of the selected row.
  private(set) var selection = 0
  /// The first row, or the first line of a detail, that is visible.
  private(set) var scroll = 0
  /// The first line of the list of keys that is visible.
  private(set) var helpScroll = 0
  private(set) var isFiltering = false
  /// The last thing that happened, in place of the help line.
  var notice: String?
  private var shown: Shown?

  /// What the rows were made of.
  private struct Shown: Equatable {
    var version: Int
    var options: StoreTree.Options
  }

  /// Updates the rows for a model and keeps the selection on its row.
  ///
  /// - Parameter height: The number of rows that are visible.
  mutating func update(_ model: InspectorModel, height: Int) {
    // Ten thousand rows take long to make. By path, only a new store changes them.
    let isByPath = options.order == .path && options.filter.isEmpty
    let version = isByPath ? model.structureVersion : model.version
    let shown = Shown(version: version, options: options)
    if self.shown != shown {
      let selected = selectedRow
      tree = StoreTree(model.stores.values, options: options)
      if let selected { selection = index(of: selected) ?? selection }
      self.shown = shown
    }
    selection = min(max(selection, 0), max(tree.rows.count - 1, 0))
    guard page == .table else { return }
    let last = max(tree.rows.count - height, 0)
    scroll = min(max(scroll, selection - height + 1, 0), max(min(selection, last), 0))
  }

  /// Shows the table of a new connection, in which stores have other identifiers.
  mutating func reconnect() {
    page = .table
    tree = StoreTree()
    selection = 0
    notice = nil
    shown = nil
  }

  /// Keeps the end of a long text on the last line.
  mutating func limitScroll(lines: Int, height: Int) {
    let last = max(lines - height, 0)
    if case .help = page { helpScroll = min(helpScroll, last) } else { scroll = min(scroll, last) }
  }

  var selectedRow: StoreTree.Row? {
    tree.rows.indices.contains(selection) ? tree.rows[selection] : nil
  }

  /// The store that the commands apply to.
  var selectedStore: Int? {
    if case .detail(let store) = page { return store }
    return selectedRow?.store
  }

  private func index(of row: StoreTree.Row) -> Int? {
    if row.store != nil { return tree.rows.firstIndex { $0.store == row.store } }
    return tree.rows.firstIndex { $0.path == row.path && $0.store == nil }
      ?? tree.rows.firstIndex { $0.path.starts(with: row.path) }
  }

  /// Applies a key, and returns what to do.
  ///
  /// - Parameter height: The number of rows that are visible.
  mutating func press(_ key: Key, model: InspectorModel, height: Int) -> Action? {
    notice = nil
    if key == .redraw { return .redraw }
    if isFiltering { return editFilter(key) }
    switch page {
    case .table: return pressInTable(key, model, height)
    case .detail: return pressInDetail(key, model, height)
    case .help(let covered):
      // Where all keys are visible, each of them closes the list.
      if HelpText.keys.count <= height || !Self.scroll(&helpScroll, key, height) { page = covered }
      return nil
    }
  }

  private mutating func editFilter(_ key: Key) -> Action? {
    switch key {
    case .character(let character): options.filter.append(character)
    case .backspace: _ = options.filter.popLast()
    case .escape:
      options.filter = ""
      isFiltering = false
    case .enter: isFiltering = false
    case .up: selection -= 1
    case .down: selection += 1
    default: break
    }
    return nil
  }

  private mutating func pressInTable(
    _ key: Key, _ model: InspectorModel, _ height: Int
  ) -> Action? {
    switch key {
    case .up, .character("k"): selection -= 1
    case .down, .character("j"): selection += 1
    case .pageUp: selection -= max(height - 1, 1)
    case .pageDown: selection += max(height - 1, 1)
    case .home, .character("g"): selection = 0
    case .end, .character("G"): selection = tree.rows.count - 1
    case .left: foldOrLeave()
    case .right: setFolded(false)
    case .character(" "): setFolded(!(selectedRow?.isFolded ?? true))
    case .enter:
      guard let store = selectedRow?.store else {
        setFolded(!(selectedRow?.isFolded ?? true))
        return nil
      }
      page = .detail(store: store)
      scroll = 0
      return .send(.watch(store: store))
    case .escape: options.filter = ""
    case .character(let character): return pressLetter(character, model)
    default: break
    }
    return nil
  }

  private mutating func pressInDetail(
    _ key: Key, _ model: InspectorModel, _ height: Int
  ) -> Action? {
    if Self.scroll(&scroll, key, height) { return nil }
    switch key {
    case .escape, .left, .backspace, .enter, .character("q"):
      page = .table
      return .send(.unwatch)
    case .character(let character): return pressLetter(character, model)
    default: break
    }
    return nil
  }

  /// Scrolls a text, and returns whether the key does so.
  private static func scroll(_ scroll: inout Int, _ key: Key, _ height: Int) -> Bool {
    switch key {
    case .up, .character("k"): scroll = max(scroll - 1, 0)
    case .down, .character("j"): scroll += 1
    case .pageUp: scroll = max(scroll - max(height - 1, 1), 0)
    case .pageDown, .character(" "): scroll += max(height - 1, 1)
    case .home, .character("g"): scroll = 0
    case .end, .character("G"): scroll = Int.max / 2
    default: return false
    }
    return true
  }

  private mutating func pressLetter(_ character: Character, _ model: InspectorModel) -> Action? {
    switch character {
    case "q": return .quit
    case "?", "h":
      page = .help(over: page)
      helpScroll = 0
    case "/":
      guard page == .table else { return nil }
      isFiltering = true
    case "s":
      let all = StoreTree.Order.allCases
      options.order = all[((all.firstIndex(of: options.order) ?? 0) + 1) % all.count]
    case "S": options.isReversed.toggle()
    case "t": options.isFlat.toggle()
    case "o": return goOffline(model)
    default: return operation(character).flatMap { command($0, model) }
    }
    return nil
  }

  private func operation(_ character: Character) -> InspectorCommand.Operation? {
    switch character {
    case "r": .refetch
    case "i": .invalidate
    case "x": .cancel
    case "R": .reset
    case "C": .clear
    default: nil
    }
  }

  private mutating func command(
    _ operation: InspectorCommand.Operation, _ model: InspectorModel
  ) -> Action? {
    guard let store = selectedStore else {
      notice = "Select a store, not a group."
      return nil
    }
    return refusal(model) ?? .send(.perform(operation, store: store))
  }

  private mutating func goOffline(_ model: InspectorModel) -> Action? {
    guard model.hello?.canGoOffline == true else {
      notice = "This client has no manual network observer."
      return nil
    }
    return refusal(model) ?? .send(.offline(!model.isOffline))
  }

  /// Puts the reason why the program takes no commands in the notice, and returns the action then.
  private mutating func refusal(_ model: InspectorModel) -> Action? {
    if model.connection != .connected {
      notice = "The program has ended."
    } else if model.hello?.isReadOnly == true {
      notice = "The inspector is read-only."
    } else {
      return nil
    }
    return .redraw
  }

  private mutating func setFolded(_ isFolded: Bool) {
    guard let row = selectedRow, row.canFold else { return }
    if isFolded {
      options.folded.insert(row.path)
    } else {
      options.folded.remove(row.path)
    }
  }

  /// Folds an open group, and selects the parent of another row.
  private mutating func foldOrLeave() {
    guard let row = selectedRow else { return }
    if row.canFold, !row.isFolded, options.filter.isEmpty {
      setFolded(true)
    } else {
      selection = tree.rows[..<selection].lastIndex { $0.depth < row.depth } ?? selection
    }
  }
}
