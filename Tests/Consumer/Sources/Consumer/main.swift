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

func useReactiveStreams() async {
  let broadcast = Broadcast<Int>()
  var numbers = broadcast.values.map { $0 * 2 }.makeAsyncIterator()
  broadcast.send(21)
  check(await numbers.next() == 42, "a stream delivers the elements that are sent")
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
await useReactiveStreams()
try await useSharingOperation(client)
print("consumer: every product is usable")
