/// How much is measured.
struct Plan: Sendable {
  let repetitions: Int
  /// The number of repetitions of a case that takes long.
  let slowRepetitions: Int
  /// The shortest duration of a batch in seconds, for work that sets no number of operations.
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
  /// Measures the case and its floor.
  func measure(_ size: Int, _ plan: Plan) async throws -> Figure {
    let pair = try await prepare(size)
    return byteLimit == nil
      ? try await measureTime(pair, size, plan) : try measureMemory(pair, size, plan)
  }

  /// Measures the two works in turns, so that the load of the machine affects both alike.
  private func measureTime(_ pair: Pair, _ size: Int, _ plan: Plan) async throws -> Figure {
    let (count, cost) = try await warmUp(pair.subject, plan)
    var floorCount = 0
    var floorCost = 0.0
    if let floor = pair.floor { (floorCount, floorCost) = try await warmUp(floor, plan) }
    let isSlow = cost + floorCost > 0.3
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

  /// Performs work until a batch takes its time, and returns the number of operations in it.
  private func warmUp(_ work: Work, _ plan: Plan) async throws -> (count: Int, cost: Double) {
    if let count = work.count { return (count, try await work.run(count)) }
    var count = 1
    while true {
      let cost = try await work.run(count)
      if cost >= plan.batchTime || count >= 1 << 24 { return (count, cost) }
      count *= cost * 4 < plan.batchTime ? 4 : 2
    }
  }

  /// Measures each work in new processes, whose heaps hold nothing of other cases.
  private func measureMemory(_ pair: Pair, _ size: Int, _ plan: Plan) throws -> Figure {
    var subjects: [Double] = []
    var floors: [Double] = []
    for _ in 0..<plan.slowRepetitions {
      subjects.append(try MemoryMeasurement(name, size, .subject).runInChildProcess())
      guard pair.floor != nil else { continue }
      floors.append(try MemoryMeasurement(name, size, .floor).runInChildProcess())
    }
    return figure(size, subjects, floors)
  }

  private func figure(_ size: Int, _ subjects: [Double], _ floors: [Double]) -> Figure {
    // The ratio of neighbours: a temporary load of the machine affects both.
    let ratios = zip(subjects, floors).map { $1 > 0 ? $0 / $1 : .infinity }
    return Figure(
      name: name, size: size, ratio: ratios.isEmpty ? nil : Statistics.median(of: ratios),
      unit: byteLimit == nil ? .seconds : .bytes, median: Statistics.median(of: subjects),
      spread: Statistics.spread(of: subjects),
      floor: floors.isEmpty ? nil : Statistics.median(of: floors),
      floorSpread: floors.isEmpty ? nil : Statistics.spread(of: floors))
  }
}
