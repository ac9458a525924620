import Operation
import Testing

/// A modifier as a user writes it: it runs the request, and logs the attempt.
private struct Announced<Base: OperationRequest>: OperationModifier {
  let log: EventLog<String>

  func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    log.append("attempt \(context.operationRetryIndex)")
    return try await base.run(isolation: isolation, in: context, with: continuation)
  }
}

/// A modifier that only writes into the context.
private struct Numbered<Base: OperationRequest>: OperationModifier {
  let number: Int

  func setup(context: inout OperationContext, using base: Base) {
    context.fixtureNumber = number
  }
}

/// A modifier that changes the value and the failure.
private struct Described<Base: OperationRequest>: OperationModifier {
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<String, Never>
  ) async -> String {
    let inner = OperationContinuation<Base.Value, Base.Failure> { result in
      if case .success(let value) = result { continuation.yield("yield \(value)") }
    }
    do throws(Base.Failure) {
      return "\(try await base.run(isolation: isolation, in: context, with: inner))"
    } catch {
      return "\(error)"
    }
  }
}

@Suite("OperationModifier") struct OperationModifierTests {
  private let log = EventLog<String>()

  @Test("A user's modifier can be applied to a query, a typed query, and a plain request")
  func everyKind() async throws {
    let script = Script()
    func typed() async throws(Refused) -> [Int] {
      [
        try await TypedQuery(script: script).modifier(Announced(log: log)).run(),
        try await PlainRequest(script: script).modifier(Announced(log: log)).run(),
        try await OperationClient(defaults: .testing)
          .store(for: TypedQuery(script: script).modifier(Announced(log: log))).run(),
      ]
    }
    #expect(try await typed() == [1, 2, 3])
    #expect(try await OpenQuery(script: script).modifier(Announced(log: log)).run() == 4)
    #expect(log.values == Array(repeating: "attempt 0", count: 4))
  }

  @Test("Below a retry a modifier runs for each attempt, and above it once")
  func retry() async throws {
    _ = try await OpenQuery(script: Script(failures: 1)).modifier(Announced(log: log))
      .retry(limit: 1).backoff(.noBackoff).modifier(Announced(log: log)).run()
    #expect(log.values == ["attempt 0", "attempt 0", "attempt 1"])
  }

  @Test("A modifier with only a setup needs no run method, and the last modifier counts")
  func setupOnly() async throws {
    let script = Script()
    let request = TypedQuery(script: script).modifier(Numbered(number: 1))
      .modifier(Numbered(number: 2))
    _ = try await request.run(in: .number(9))
    let store = OperationClient(defaults: .testing).store(for: request)
    _ = try await store.run()
    _ = try await store.run(using: .number(9))
    #expect(script.contexts.values.map(\.fixtureNumber) == [2, 2, 9])
  }

  @Test("The setup of the request comes before that of its modifiers")
  func setupOrder() async throws {
    struct Own: QueryRequest {
      let path: OperationPath = ["own"]

      func setup(context: inout OperationContext) { context.fixtureNumber = 1 }

      func fetch(
        in context: OperationContext, with continuation: OperationContinuation<Int, Never>
      ) async throws(Never) -> Int {
        context.fixtureNumber
      }
    }
    #expect(await Own().run(in: .number(5)) == 1)
    #expect(await Own().modifier(Numbered(number: 2)).run() == 2)
  }

  @Test("A modifier can change the types of the value and the failure")
  func otherTypes() async {
    let script = Script { attempt, _, yield in
      yield(.success(8))
      return attempt == 1 ? .success(1) : .failure(Refused(attempt: attempt))
    }
    let request = TypedQuery(script: script).modifier(Described())
    let continuation = OperationContinuation<String, Never> { log.append($0.get()) }
    let results = [await request.run(with: continuation), await request.run()]
    #expect(results == ["1", "Refused(attempt: 2)"])
    #expect(log.values == ["yield 8"])
  }

  @Test("A modified query shares the store of the query on its path")
  func sameStore() {
    let client = OperationClient(defaults: .testing)
    let query = OpenQuery(script: Script())
    let store = client.store(for: query.modifier(Numbered(number: 3)).retry(limit: 1))
    #expect(client.store(for: query) === store)
    #expect(store.context.fixtureNumber == 3)
  }
}
