import Foundation
import Operation
import ReactiveStreams
import SharingOperation

struct Greeting: QueryRequest, Hashable {
  let name: String

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<String, any Error>
  ) async throws -> String {
    "Hello, \(name)!"
  }
}

enum Refused: Error { case always }

struct Guarded: QueryRequest, Hashable {
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, Refused>
  ) async throws(Refused) -> Int {
    throw .always
  }
}

struct Announced<Base: OperationRequest>: OperationModifier {
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    try await base.run(isolation: isolation, in: context, with: continuation)
  }
}

final class Model {
  @SharedQuery(Greeting(name: "reader").modifier(Announced()), default: "…") var greeting
}

/// Values that can be compared on the main actor only.
struct Isolated: @MainActor Equatable, Sendable {
  let number: Int

  @MainActor static func == (lhs: Isolated, rhs: Isolated) -> Bool {
    check(Thread.isMainThread, "an isolated comparison is called on its actor only")
    return lhs.number == rhs.number
  }
}

func check(_ condition: Bool, _ claim: String) {
  guard !condition else { return }
  print("consumer: not true: \(claim)")
  exit(1)
}

func useOperation(_ client: OperationClient) async throws {
  let request = Greeting(name: "world").retry(limit: 1).stale(after: .seconds(60))
  check(try await client.store(for: request).run() == "Hello, world!", "a query runs")
  let sum = client.store(for: Query(path: ["sum"]) { _ in 1 + 1 })
  check(try await sum.run() == 2, "a closure is a query")
  do throws(Refused) {
    _ = try await client.store(for: Guarded()).run()
    check(false, "a failing query throws")
  } catch {
    check(error == .always, "a typed failure stays typed")
  }
}

/// Makes a stream of values on the main actor, and writes the values on another thread.
func useIsolatedValues(_ client: OperationClient) async {
  let store = client.store(for: Query(path: ["isolated"]) { _ in Isolated(number: 1) })
  let values = await MainActor.run { store.values }
  await Task.detached {
    store.currentValue = Isolated(number: 1)
    var iterator = values.makeAsyncIterator()
    check(await iterator.next()??.number == 1, "a stream begins with the present value")
    store.currentValue = Isolated(number: 1)
    check(await iterator.next()??.number == 1, "values that cannot be compared are delivered")
  }.value
}

func useReactiveStreams() async {
  let broadcast = Broadcast<Int>()
  var numbers = broadcast.values.map { $0 * 2 }.makeAsyncIterator()
  broadcast.send(21)
  check(await numbers.next() == 42, "a stream delivers the elements that are sent")
}

func useReports() async {
  let kinds = Broadcast<OperationIssue.Kind>()
  var reported = kinds.values.makeAsyncIterator()
  await OperationIssue.withHandler { issue in
    kinds.send(issue.kind)
  } operation: {
    await Task.yield()
    _ = Greeting(name: "nobody").retry(limit: -1)
  }
  check(await reported.next() == .invalidValue, "a handler receives the reports of a closure")
  OperationIssue.withHandler({ _ in }, operation: { _ = Greeting(name: "nobody").retry(limit: -1) })
}

func useSharingOperation(_ client: OperationClient) async throws {
  try await OperationClient.withCurrent(client) {
    let model = Model()
    try await model.$greeting.fetch()
    check(model.greeting == "Hello, reader!", "a wrapper returns the value")
  }
}

let client = OperationClient(defaults: .testing, clock: ManualClock())
try await useOperation(client)
await useIsolatedValues(client)
await useReactiveStreams()
await useReports()
try await useSharingOperation(client)
print("consumer: every product is usable")
