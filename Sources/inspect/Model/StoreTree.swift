/// The stores of a program as a tree by path, as rows to show.
struct StoreTree: Equatable, Sendable {
  /// A line of the table: a store, a group of stores with a common path, or both.
  struct Row: Equatable, Sendable {
    var path: [String]
    /// The last elements of the path, which distinguish the row from its parent.
    var label: String
    var depth: Int
    var store: Int?
    /// The number of stores below it.
    var descendants: Int
    var isFolded: Bool

    var canFold: Bool { descendants > 0 }
  }

  enum Order: String, CaseIterable, Sendable {
    case path, status, age, runs, subscribers
  }

  /// What selects and orders the rows.
  struct Options: Equatable, Sendable {
    var filter = ""
    var order = Order.path
    var isReversed = false
    /// Whether to list the stores without their groups.
    var isFlat = false
    var folded: Set<[String]> = []

    /// Whether paths are in descending order.
    var isBackwards: Bool { isReversed && order == .path }
  }

  private(set) var rows: [Row] = []
  /// The columns that the longest label takes, with its indentation and the sign before it.
  private(set) var longestLabel = 0

  init() {}

  init(_ stores: some Sequence<StoreRecord>, options: Options) {
    let words = options.filter.lowercased().split(separator: " ").map(String.init)
    let kept = stores.filter { $0.matches(words) }
    if options.isFlat {
      let keyed = kept.map { (store: $0, key: SortKey($0, options)) }
      rows = keyed.sorted { $0.key.precedes($1.key, options) }.map {
        Row(
          path: $0.store.path, label: $0.store.name, depth: 0, store: $0.store.id, descendants: 0,
          isFolded: false)
      }
    } else {
      var root = Node(element: "")
      for store in kept { root.insert(store, options) }
      root.appendRows(to: &rows, options: options)
    }
    longestLabel = rows.map { min($0.depth, 12) * 2 + 2 + $0.label.columns }.max() ?? 0
  }

  /// Compares two elements of paths: numbers by their value, and other texts, also two of the same number
  /// such as `1` and `01`, by their characters. So different elements always have an order.
  static func naturally(_ left: String, _ right: String) -> Bool {
    switch (Int(left), Int(right)) {
    case (let left?, let right?) where left != right: left < right
    case (.some, nil): true
    case (nil, .some): false
    default: left < right
    }
  }

  /// What a store or a group is sorted by: a number, and then the path.
  fileprivate struct SortKey {
    var number: Double
    var path: [String]

    init(_ store: StoreRecord, _ options: Options) {
      path = store.path
      number =
        switch options.order {
        case .path: 0
        case .status: Double(StoreRecord.Status.allCases.firstIndex(of: store.status) ?? 0)
        case .age: -(store.lastResult ?? 0)
        case .runs: -Double(store.numbers.runs)
        case .subscribers: -Double(store.numbers.subscribers)
        }
      if options.isReversed { number = -number }
    }

    func precedes(_ other: SortKey, _ options: Options) -> Bool {
      if number != other.number { return number < other.number }
      return options.isBackwards
        ? other.path.lexicographicallyPrecedes(path, by: StoreTree.naturally)
        : path.lexicographicallyPrecedes(other.path, by: StoreTree.naturally)
    }
  }

  fileprivate struct Node {
    var element: String
    /// More than one where stores have the same path.
    var stores: [Int] = []
    var number = Double.infinity
    var count = 0
    var children: [String: Node] = [:]

    /// A node sorts as the first of the stores in it.
    mutating func insert(_ store: StoreRecord, _ options: Options) {
      insert(store.id, key: SortKey(store, options), at: store.path[...])
    }

    private mutating func insert(_ store: Int, key: SortKey, at path: ArraySlice<String>) {
      count += 1
      number = min(number, key.number)
      guard let element = path.first else {
        stores.append(store)
        return
      }
      children[element, default: Node(element: element)]
        .insert(store, key: key, at: path.dropFirst())
    }

    /// Appends the rows below a node. Groups with a single child and no store of their own share
    /// the row of that child.
    func appendRows(
      to rows: inout [Row], options: Options, path: [String] = [], depth: Int = 0,
      label: String = ""
    ) {
      if stores.isEmpty, children.count == 1, let child = children.values.first {
        let joined = path.isEmpty ? child.element : "\(label)/\(child.element)"
        child.appendRows(
          to: &rows, options: options, path: path + [child.element], depth: depth, label: joined)
        return
      }
      let isRoot = path.isEmpty && stores.isEmpty
      let isFolded = !isRoot && options.folded.contains(path) && options.filter.isEmpty
      if !isRoot {
        appendOwn(to: &rows, path: path, depth: depth, label: label, isFolded: isFolded)
      }
      guard !isFolded else { return }
      let sorted = children.values.sorted {
        $0.number != $1.number
          ? $0.number < $1.number
          : StoreTree.naturally($0.element, $1.element) != options.isBackwards
      }
      for child in sorted {
        child.appendRows(
          to: &rows, options: options, path: path + [child.element],
          depth: isRoot ? 0 : depth + 1, label: child.element)
      }
    }

    private func appendOwn(
      to rows: inout [Row], path: [String], depth: Int, label: String, isFolded: Bool
    ) {
      let name = path.isEmpty ? "(no path)" : label
      let own: [Int?] = stores.isEmpty ? [nil] : stores.sorted()
      for (index, store) in own.enumerated() {
        let isLast = index == own.count - 1
        rows.append(
          Row(
            path: path, label: name, depth: depth, store: store,
            descendants: isLast ? count - stores.count : 0, isFolded: isFolded && isLast))
      }
    }
  }
}
