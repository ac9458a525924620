/// One case: what is measured, and the floor that is measured beside it.
struct Benchmark: Sendable {
  /// How the cost has to grow with the size.
  enum Growth: String, Sendable {
    case flat
    case linear
  }

  let name: String
  /// What the floor is, for the table.
  let floor: String
  var sizes: [Int] = []
  /// What the size counts.
  var unit = ""
  /// How many times the floor the case may cost.
  var limit: Double?
  var growth: Growth?
  /// How many bytes may be left, for a case that measures memory.
  var byteLimit: Double?
  /// Makes what is measured, for a size; zero for a case without sizes.
  let prepare: @Sendable (Int) async throws -> Pair

  func label(of size: Int) -> String {
    size == 0 && sizes.isEmpty ? name : "\(name), \(size) \(unit)"
  }
}

/// What is measured and its floor.
struct Pair: Sendable {
  let subject: Work
  var floor: Work?
}

/// Something that can be done many times over.
struct Work: Sendable {
  /// How many operations one batch has; `nil` for as many as fill the time of a batch.
  let count: Int?
  /// Does so many operations; gives what they took, in seconds or in bytes.
  let run: @Sendable (Int) async throws -> Double

  init(count: Int? = nil, _ run: @escaping @Sendable (Int) async throws -> Double) {
    self.count = count
    self.run = run
  }

  /// One operation after the other, with nothing between them, beside what is kept.
  static func loop(
    keeping kept: any Sendable = (), _ operation: @escaping @Sendable (Int) -> Void
  ) -> Work {
    Work { count in
      defer { withExtendedLifetime(kept) {} }
      return timed { for index in 0..<count { operation(index) } }
    }
  }

  /// One operation after the other, with nothing between them, beside what is kept.
  static func loop(
    keeping kept: any Sendable = (), _ operation: @escaping @Sendable (Int) async throws -> Void
  ) -> Work {
    Work { count in
      defer { withExtendedLifetime(kept) {} }
      return try await timed { for index in 0..<count { try await operation(index) } }
    }
  }
}

extension Work {
  /// One operation after the other, each of which tells what it took.
  static func each(_ operation: @escaping @Sendable () async throws -> Double) -> Work {
    Work { count in
      var cost = 0.0
      for _ in 0..<count { cost += try await operation() }
      return cost
    }
  }
}

/// How long something takes, in seconds.
func timed(_ body: () throws -> Void) rethrows -> Double {
  try ContinuousClock().measure(body).seconds
}

/// How long something takes, in seconds.
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

/// How much is measured.
struct Plan: Sendable {
  let repetitions: Int
  /// How often what takes long is measured.
  let slowRepetitions: Int
  /// How long a batch takes at least, in seconds, if the case leaves that open.
  let batchTime: Double
  let isQuick: Bool

  static let full = Plan(
    repetitions: 15, slowRepetitions: 7, batchTime: 0.01, isQuick: false)
  static let quick = Plan(
    repetitions: 2, slowRepetitions: 2, batchTime: 0.0002, isQuick: true)

  func sizes(of benchmark: Benchmark) -> [Int] {
    if benchmark.sizes.isEmpty { return [0] }
    return isQuick ? Array(benchmark.sizes.prefix(1)) : benchmark.sizes
  }
}

extension Benchmark {
  /// Measures the case and its floor in turns, so that both meet the same weather.
  func measure(_ size: Int, _ plan: Plan) async throws -> Figure {
    let pair = try await prepare(size)
    let (count, cost) = try await warmUp(pair.subject, plan)
    var floorCount = 0
    var floorCost = 0.0
    if let floor = pair.floor { (floorCount, floorCost) = try await warmUp(floor, plan) }
    let isSlow = byteLimit != nil || cost + floorCost > 0.3
    var subjects: [Double] = []
    var floors: [Double] = []
    for repetition in 0..<(isSlow ? plan.slowRepetitions : plan.repetitions) {
      func measureFloor() async throws {
        guard let floor = pair.floor else { return }
        floors.append(try await floor.run(floorCount) / Double(floorCount))
      }
      if repetition.isMultiple(of: 2) { try await measureFloor() }
      subjects.append(try await pair.subject.run(count) / Double(count))
      if !repetition.isMultiple(of: 2) { try await measureFloor() }
    }
    return figure(size, subjects, floors)
  }

  /// Does the work until a batch takes its time; gives how many operations that are.
  private func warmUp(_ work: Work, _ plan: Plan) async throws -> (count: Int, cost: Double) {
    if let count = work.count { return (count, try await work.run(count)) }
    var count = 1
    while true {
      let cost = try await work.run(count)
      if cost >= plan.batchTime || count >= 1 << 24 { return (count, cost) }
      count *= cost * 4 < plan.batchTime ? 4 : 2
    }
  }

  private func figure(_ size: Int, _ subjects: [Double], _ floors: [Double]) -> Figure {
    // Pairs of neighbours: what disturbs the machine for a while disturbs both.
    let ratios = zip(subjects, floors).map { $1 > 0 ? $0 / $1 : .infinity }
    return Figure(
      name: name, size: size, ratio: ratios.isEmpty ? nil : Statistics.median(of: ratios),
      unit: byteLimit == nil ? .seconds : .bytes, median: Statistics.median(of: subjects),
      spread: Statistics.spread(of: subjects),
      floor: floors.isEmpty ? nil : Statistics.median(of: floors),
      floorSpread: floors.isEmpty ? nil : Statistics.spread(of: floors))
  }
}
