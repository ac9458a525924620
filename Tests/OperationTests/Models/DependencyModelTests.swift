import TestSupport
import Testing

@testable import Operation

/// The requests of a schedule, as its steps define them.
private final class Sums: Sendable, Hashable {
  let nodes = Monitor<[DependencyModel.Node]>([])
  let began = Recorder<Int>()

  static func == (lhs: Sums, rhs: Sums) -> Bool { lhs === rhs }
  func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

private struct Sum: QueryRequest, Hashable {
  let id: Int
  let sums: Sums

  var path: OperationPath { ["sum", id] }

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    sums.began.append(id)
    let node = sums.nodes.value[id]
    if node.fails { throw Failed(code: id) }
    var sum = node.base
    for other in node.edges {
      sum += try await context.ensure(Sum(id: other, sums: sums).neverStale())
    }
    return sum
  }
}

@Suite struct DependencyModelTests {
  @Test("Stores that are read, invalidated, cleared and observed at random match a plain list")
  func schedules() async {
    await Schedules.each("Dependencies") { seed in
      try await Schedule(seed: seed).run(seed: seed)
    }
  }

  /// One client beside the model.
  private final class Schedule {
    private let client = OperationClient(defaults: .testing, clock: ManualClock())
    private let sums = Sums()
    private let count: Int
    private var model: DependencyModel
    private var subscriptions: [Int: OperationSubscription] = [:]
    private var random: SplitMix
    private var trace: [DependencyStep] = []

    init(seed: UInt64) {
      random = SplitMix(seed: seed)
      count = Int.random(in: 2...6, using: &random)
      model = DependencyModel(count: count)
    }

    private func store(_ id: Int) -> OperationStore<QueryState<Int, any Error>> {
      client.store(for: request(id))
    }

    private func request(_ id: Int) -> some QueryRequest<Int, QueryState<Int, any Error>> {
      Sum(id: id, sums: sums).neverStale()
    }

    func run(seed: UInt64) async throws {
      for id in 1..<count { try await take(.edges(id, randomEdges(of: id))) }
      for _ in 0..<Int.random(in: 4...14, using: &random) { try await take(randomStep()) }
      for subscription in subscriptions.values { subscription.cancel() }
      client.clearStores()
      try mustHold(
        client.hub.hasNoDependencies, "nothing is left of what was read: \(trace.listed)")
    }

    private func randomEdges(of id: Int) -> [Int] {
      (0..<id).filter { _ in Int.random(in: 0..<5, using: &random) < 2 }
    }

    private func randomStep() -> DependencyStep {
      let id = Int.random(in: 0..<count, using: &random)
      let isObserved = subscriptions[id] != nil
      switch Int.random(in: 0..<16, using: &random) {
      case 0..<2: return .edges(id, randomEdges(of: id))
      case 2: return .change(id)
      case 3: return .fail(id)
      case 4..<6: return .fetch(id)
      case 6..<8: return .ensure(id)
      case 8..<11: return isObserved ? .unsubscribe(id) : .subscribe(id)
      case 11: return isObserved ? .invalidate(id) : .clear(id)
      default: return .invalidate(id)
      }
    }

    private func take(_ step: DependencyStep) async throws {
      trace.append(step)
      let began = sums.began.count
      let expected = model.perform(step)
      sums.nodes.update { [nodes = model.nodes] in $0 = nodes }
      switch step {
      case .edges, .change, .fail: break
      case .fetch(let id):
        let value = try? await client.fetch(request(id))
        try mustHold(value == expected, "\(id) returns \(name(value)): \(trace.listed)")
      case .ensure(let id):
        let value = try? await client.ensure(request(id))
        try mustHold(value == expected, "\(id) returns \(name(value)): \(trace.listed)")
      case .subscribe(let id): subscriptions[id] = store(id).subscribe { _ in }
      case .unsubscribe(let id): subscriptions.removeValue(forKey: id)?.cancel()
      case .invalidate(let id): client.invalidate(request(id))
      case .clear(let id): client.clearStore(with: ["sum", id])
      }
      await untilIdle()
      try check(Array(sums.began.all[began...]))
    }

    private func untilIdle() async {
      while client.stores(matching: []).contains(where: \.isLoading) { await Task.yield() }
    }

    private func check(_ began: [Int]) throws {
      let expected = model.began
      try mustHold(
        Set(began) == Set(expected), "\(began) ran, and not \(expected): \(trace.listed)")
      if !model.hasFailing {
        try mustHold(began.count == expected.count, "\(began) ran, each once: \(trace.listed)")
      }
      for (id, node) in model.nodes.enumerated() {
        let present = client.store(with: ["sum", id])
        guard let present, let store = present.base as? OperationStore<QueryState<Int, any Error>>
        else {
          try mustHold(node.value == nil, "\(id) has \(name(node.value)): \(trace.listed)")
          continue
        }
        try mustHold(
          store.currentValue == node.value,
          "\(id) has \(name(store.currentValue)), and not \(name(node.value)): \(trace.listed)")
        try mustHold(
          node.value == nil || store.isInvalidated == node.isInvalidated,
          "\(id) is \(node.isInvalidated ? "" : "not ")out of date: \(trace.listed)")
      }
    }

    private func name(_ value: Int?) -> String { value.map { "\($0)" } ?? "nothing" }
  }
}
