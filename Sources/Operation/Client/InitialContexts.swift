/// The contexts that stores begin with: those of a client, and those that were set for a prefix of the
/// path.
struct InitialContexts: Sendable {
  /// Defaults, and the contexts that they give for each kind of request.
  struct Rules: Sendable {
    let defaults: OperationDefaults
    private let query, pages, mutation: OperationContext

    init(_ defaults: OperationDefaults, over base: OperationContext) {
      self.defaults = defaults
      query = defaults.context(for: .query, over: base)
      pages = defaults.context(for: .pages, over: base)
      mutation = defaults.context(for: .mutation, over: base)
    }

    subscript(kind: OperationKind) -> OperationContext {
      switch kind {
      case .query: query
      case .pages: pages
      case .mutation: mutation
      }
    }
  }

  /// The context of the client, without defaults.
  private let base: OperationContext
  private let own: Rules
  private var prefixes: [OperationPath: Rules] = [:]
  /// The greatest length of a prefix.
  private var length = 0
  /// The number of times that rules were set.
  private(set) var version = 0

  init(
    _ defaults: OperationDefaults = .standard, over base: OperationContext = OperationContext()
  ) {
    self.base = base
    own = Rules(defaults, over: base)
  }

  /// The context for a path: that of its longest prefix which has rules.
  func context(for kind: OperationKind, at path: OperationPath) -> OperationContext {
    if prefixes.isEmpty { return own[kind] }
    let lengths = stride(from: min(length, path.count), through: 0, by: -1)
    let rules = lengths.lazy.compactMap { prefixes[path.prefix(ofLength: $0)] }.first ?? own
    return rules[kind]
  }

  func defaults(
    for path: OperationPath
  ) -> (OperationDefaults, base: OperationContext, version: Int) {
    ((prefixes[path] ?? own).defaults, base, version)
  }

  /// Sets the rules for a prefix, unless others were set since a version. Returns the ones before, to be
  /// released without the lock.
  mutating func set(
    _ rules: Rules, for path: OperationPath, at version: Int
  ) -> (isSet: Bool, old: Rules?) {
    if version != self.version { return (false, nil) }
    self.version += 1
    length = max(length, path.count)
    return (true, prefixes.updateValue(rules, forKey: path))
  }
}
