/// The latency and the faults of a server, which are the same in every run.
///
/// The paths may have parameters: `/posts/:id` means all posts together, `/posts/7` just one.
public struct ServerBehaviour: Sendable {
  /// The delay of every response, except on the paths in `delays`.
  public var latency: Duration
  /// The paths with their own latency. The first match applies.
  public var delays: [Delay]
  /// The planned failures. The first match applies.
  public var faults: [Fault]

  /// Creates a behaviour, by default one of a quick and reliable network.
  public init(
    latency: Duration = .milliseconds(60), delays: [Delay] = [], faults: [Fault] = []
  ) {
    self.latency = latency
    self.delays = delays
    self.faults = faults
  }

  /// A path with its own latency.
  public struct Delay: Sendable {
    let pattern: RoutePattern
    let latency: Duration

    /// Creates the latency of a path.
    public init(_ path: String, _ latency: Duration) {
      pattern = RoutePattern(path)
      self.latency = latency
    }
  }

  /// A failure of some of the requests to a path.
  public struct Fault: Sendable {
    let pattern: RoutePattern
    let schedule: Schedule
    let kind: Kind

    enum Kind: Sendable {
      case status(Int)
      case hangUp(after: Int)
    }

    /// Creates a fault, with the status 503 by default.
    public init(_ path: String, _ schedule: Schedule, status: Int = 503) {
      self.init(path, schedule, .status(status))
    }

    /// Creates a fault where the server hangs up after a number of bytes of its response, with the
    /// head, or after the whole response if it is shorter. A negative number sends none.
    public init(_ path: String, _ schedule: Schedule, hangUpAfter bytes: Int) {
      self.init(path, schedule, .hangUp(after: max(bytes, 0)))
    }

    private init(_ path: String, _ schedule: Schedule, _ kind: Kind) {
      pattern = RoutePattern(path)
      self.schedule = schedule
      self.kind = kind
    }
  }

  /// A selection of requests by their number, in the order in which they arrive at a path.
  public enum Schedule: Sendable {
    /// The first requests, up to this number.
    case first(Int)
    /// Each request whose number is a multiple of this one.
    case every(Int)
    /// All requests.
    case always

    func contains(_ number: Int) -> Bool {
      switch self {
      case .first(let count): number <= count
      case .every(let step): step > 0 && number.isMultiple(of: step)
      case .always: true
      }
    }
  }
}

extension ServerBehaviour {
  func latency(at path: [String]) -> Duration {
    delays.first { $0.pattern.match(path) != nil }?.latency ?? latency
  }

  /// Returns the fault of the request that was counted last, if one is planned for it.
  func fault(at path: [String], counts: RequestCounts) -> Fault? {
    faults.first { fault in
      fault.pattern.match(path) != nil && fault.schedule.contains(counts.total(for: fault.pattern))
    }
  }
}

/// The number of requests of each path.
struct RequestCounts: Sendable {
  private var counts: [[String]: Int] = [:]

  mutating func add(_ path: [String]) {
    counts[path, default: 0] += 1
  }

  func total(for pattern: RoutePattern) -> Int {
    counts.reduce(0) { $0 + (pattern.match($1.key) == nil ? 0 : $1.value) }
  }
}
