/// The counts of what the stores of a client have done since its statistics were read first.
public struct OperationStatistics: Sendable, Hashable {
  /// The numbers of events by their kind.
  public struct Counts: Sendable, Hashable {
    /// The number of calls that were answered with the cached value.
    public internal(set) var hits = 0
    /// The number of callers that joined a run of another one.
    public internal(set) var joins = 0
    /// The number of runs that were started.
    public internal(set) var runs = 0
    /// The number of runs that failed.
    public internal(set) var failures = 0
    /// The number of runs that were cancelled.
    public internal(set) var cancellations = 0
    /// The number of attempts after the first one of a run.
    public internal(set) var retries = 0
    /// The number of stores that were removed because they were not used, or to free memory.
    public internal(set) var evictions = 0

    mutating func add(_ occurrence: OperationClientEvent.Occurrence, isEviction: Bool = false) {
      switch occurrence {
      case .answeredFromCache: hits += 1
      case .joined: joins += 1
      case .runStarted: runs += 1
      case .attemptBegan(_, let index): retries += index > 0 ? 1 : 0
      case .runEnded(_, .failure, _): failures += 1
      case .runEnded(_, .cancelled, _): cancellations += 1
      case .storeRemoved: evictions += isEviction ? 1 : 0
      case .storeAdded, .yielded, .pageBegan, .pageEnded, .runEnded(_, .success, _): break
      }
    }

    static func + (lhs: Counts, rhs: Counts) -> Counts {
      counters.reduce(into: lhs) { $0[keyPath: $1.keyPath] += rhs[keyPath: $1.keyPath] }
    }

    /// The counters by the names that they have in the text.
    static var counters: [(keyPath: WritableKeyPath<Counts, Int>, name: String)] {
      [
        (\.hits, "hits"), (\.joins, "joins"), (\.runs, "runs"), (\.failures, "failures"),
        (\.cancellations, "cancellations"), (\.retries, "retries"), (\.evictions, "evictions"),
      ]
    }
  }

  /// The counts of each kind of request that had an event.
  public internal(set) var byKind: [OperationKind: Counts] = [:]
  /// The counts below each path that had an event, of the length for which they are counted.
  public internal(set) var byPrefix: [OperationPath: Counts] = [:]

  /// The counts of all stores.
  public var total: Counts { byKind.values.reduce(Counts(), +) }

  mutating func add(_ event: OperationClientEvent, prefixLength: Int) {
    let (occurrence, isEviction) = (event.occurrence, event.isEviction)
    byKind[event.kind, default: Counts()].add(occurrence, isEviction: isEviction)
    if prefixLength == 0 { return }
    let prefix = event.path.prefix(ofLength: prefixLength)
    byPrefix[prefix, default: Counts()].add(occurrence, isEviction: isEviction)
  }
}

extension OperationStatistics {
  /// Returns the counts in the text format of Prometheus, version 0.0.4: counters with a sample for
  /// each kind, and others with one for each counted path.
  ///
  /// - Parameter namespace: The beginning of the names, as in `operation_runs_total`. It must consist of
  ///   letters, digits and underscores, and begin with a letter: it is not checked.
  public func prometheusText(namespace: String = "operation") -> String {
    let kinds = byKind.map { ("kind=\"\($0.key.rawValue)\"", $0.value) }
    let paths = byPrefix.map { ("path=\"\(Self.escape("\($0.key)"))\"", $0.value) }
    return Self.samples(kinds, namespace) + Self.samples(paths, "\(namespace)_path")
  }

  private static func samples(
    _ values: [(label: String, counts: Counts)], _ namespace: String
  ) -> String {
    if values.isEmpty { return "" }
    let values = values.sorted { $0.label < $1.label }
    return Counts.counters.map { keyPath, name in
      let metric = "\(namespace)_\(name)_total"
      let samples = values.map { "\(metric){\($0.label)} \($0.counts[keyPath: keyPath])\n" }
      return "# TYPE \(metric) counter\n" + samples.joined()
    }.joined()
  }

  private static func escape(_ text: String) -> String {
    let escapes: [Unicode.Scalar: String] = ["\\": "\\\\", "\"": "\\\"", "\n": "\\n"]
    // Not by characters: a carriage return and a line feed are one.
    return text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
  }
}
