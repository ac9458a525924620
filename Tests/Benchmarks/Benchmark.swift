/// A case: the work that is measured, and its floor.
///
/// The *floor* of a case is the baseline that is measured beside it on the same machine, such as a
/// bare task, a lock or a dictionary. The ratio of the two costs has a limit.
struct Benchmark: Sendable {
  /// How the cost is expected to grow with the size.
  enum Growth: String, Sendable {
    case flat
    case linear

    /// The exponent of the cost as a power of the size.
    var exponent: Double { self == .flat ? 0 : 1 }
  }

  let name: String
  /// A description of the floor; empty for a case without one.
  let floor: String
  /// The sizes at which the case is measured; empty for a case without sizes.
  var sizes: [Int] = []
  /// The unit of the sizes.
  var unit = ""
  /// The highest ratio to the floor.
  var limit: Double?
  /// The highest ratios at sizes for which they differ from `limit`.
  var limitsBySize: [Int: Double] = [:]
  var growth: Growth?
  /// The highest number of bytes for each operation, for a case that measures memory.
  var byteLimit: Double?
  /// Prepares the measurement of a size, which is zero for a case without sizes.
  let prepare: @Sendable (Int) async throws -> Pair

  func label(of size: Int) -> String {
    size == 0 && sizes.isEmpty ? name : "\(name), \(size) \(unit)"
  }

  func limit(at size: Int) -> Double? { limitsBySize[size] ?? limit }
}

/// The two works of a case.
struct Pair: Sendable {
  let subject: Work
  var floor: Work?
}

/// An operation that can be repeated.
struct Work: Sendable {
  /// The number of operations in a batch; `nil` for as many as take the time of a batch.
  let count: Int?
  /// Performs a number of operations, and returns their cost in seconds or in bytes.
  let run: @Sendable (Int) async throws -> Double

  init(count: Int? = nil, _ run: @escaping @Sendable (Int) async throws -> Double) {
    self.count = count
    self.run = run
  }

  /// Returns work that performs one operation after the other, and keeps objects alive meanwhile.
  static func loop(
    keeping kept: any Sendable = (), _ operation: @escaping @Sendable (Int) -> Void
  ) -> Work {
    Work { count in
      defer { withExtendedLifetime(kept) {} }
      return timed { for index in 0..<count { operation(index) } }
    }
  }

  /// Returns work that performs one operation after the other, and keeps objects alive meanwhile.
  static func loop(
    keeping kept: any Sendable = (), _ operation: @escaping @Sendable (Int) async throws -> Void
  ) -> Work {
    Work { count in
      defer { withExtendedLifetime(kept) {} }
      return try await timed { for index in 0..<count { try await operation(index) } }
    }
  }

  /// Returns work that performs one operation after the other, each of which returns its cost.
  static func each(_ operation: @escaping @Sendable () async throws -> Double) -> Work {
    Work { count in
      var cost = 0.0
      for _ in 0..<count { cost += try await operation() }
      return cost
    }
  }
}

/// Returns the duration of a call in seconds.
func timed(_ body: () throws -> Void) rethrows -> Double {
  try ContinuousClock().measure(body).seconds
}

/// Returns the duration of a call in seconds.
func timed(_ body: () async throws -> Void) async rethrows -> Double {
  let clock = ContinuousClock()
  let start = clock.now
  try await body()
  return (clock.now - start).seconds
}

extension Duration {
  var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
