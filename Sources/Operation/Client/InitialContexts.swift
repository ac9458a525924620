/// The contexts that stores begin with: those of a client, and those that were set for a prefix of the
/// path.
struct InitialContexts: Sendable {
  /// Defaults, and the contexts that they give for each kind of request.
  struct Rules: Sendable {
    let defaults: OperationDefaults
    let contexts: [OperationKind: OperationContext]

    init(_ defaults: OperationDefaults, over base: OperationContext) {
      self.defaults = defaults
      contexts = Dictionary(
        uniqueKeysWithValues: OperationKind.all.map {
          ($0, defaults.context(for: $0, over: base))
        })
    }
  }

  /// The context of the client, without defaults.
  private let base: OperationContext
  private let own: Rules
  private var prefixes: [OperationPath: Rules] = [:]
  /// The greatest length of a prefix.
  private var length = 0

  init(
    _ defaults: OperationDefaults = .standard, over base: OperationContext = OperationContext()
  ) {
    self.base = base
    own = Rules(defaults, over: base)
  }

  /// The context for a path: that of its longest prefix which has rules.
  func context(for kind: OperationKind, at path: OperationPath) -> OperationContext {
    if prefixes.isEmpty { return own.contexts[kind] ?? base }
    let lengths = stride(from: min(length, path.count), through: 0, by: -1)
    let rules = lengths.lazy.compactMap { prefixes[path.prefix(ofLength: $0)] }.first ?? own
    return rules.contexts[kind] ?? base
  }

  func defaults(for path: OperationPath) -> (OperationDefaults, base: OperationContext) {
    ((prefixes[path] ?? own).defaults, base)
  }

  /// Sets the rules for a prefix. Returns the ones before, to be released without the lock.
  mutating func set(_ rules: Rules, for path: OperationPath) -> Rules? {
    length = max(length, path.count)
    return prefixes.updateValue(rules, forKey: path)
  }
}
