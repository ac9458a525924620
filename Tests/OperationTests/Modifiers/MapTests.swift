import Operation
import Testing

@Suite("map") struct MapTests {
  @Test("The value and every yielded value are transformed, and failures are not", arguments: 0..<3)
  func withoutStore(kind: Int) async throws {
    let script = Script { attempt, _, yield in
      yield(.success(7))
      yield(.failure(Refused(attempt: 3)))
      return .success(attempt)
    }
    let log = EventLog<String>()
    @Sendable func tell<Failure>(_ result: Result<String, Failure>) {
      switch result {
      case .success(let value): log.append(value)
      case .failure(let error): log.append("\(error)")
      }
    }
    let value =
      switch kind {
      case 0:
        try await OpenQuery(script: script).map { "<\($0)>" }
          .run(with: OperationContinuation { tell($0) })
      case 1:
        try await TypedQuery(script: script).map { "<\($0)>" }
          .run(with: OperationContinuation { tell($0) })
      default:
        try await PlainRequest(script: script).map { "<\($0)>" }
          .run(with: OperationContinuation { tell($0) })
      }
    #expect(value == "<1>")
    #expect(log.values == ["<7>", "Refused(attempt: 3)"])
  }

  @Test("A mapped query is a query whose state has the new value and the old failure")
  func store() async throws {
    let client = OperationClient(defaults: .testing)
    let store: OperationStore<QueryState<String, Refused>> = client.store(
      for: TypedQuery(script: Script(failures: 1)).map { "<\($0)>" })
    await #expect(throws: Refused(attempt: 1)) { try await store.run() }
    let error: Refused? = store.error
    #expect(error == Refused(attempt: 1))
    #expect(try await store.run() == "<2>")
    #expect(store.currentValue == "<2>")
    #expect(store.path == ["typed"])
  }

  @Test("Modifiers before and after a map apply")
  func modifiers() async throws {
    func request() -> some QueryRequest<String, QueryState<String, any Error>> {
      OpenQuery(script: Script(failures: 1)).retry(limit: 1).map { $0 + 1 }
        .backoff(.noBackoff).map { "\($0)" }
    }
    #expect(try await request().run() == "3")
    #expect(try await OperationClient(defaults: .testing).store(for: request()).run() == "3")
  }

  @Test("A query and its map clash on one path, which is reported, and neither loses its state")
  func clash() async throws {
    let client = OperationClient(defaults: .testing)
    let query = OpenQuery(script: Script())
    let store = client.store(for: query)
    let reported = await issues { client.store(for: query.map { "\($0)" }) }
    #expect(reported.issues.map(\.kind) == [.pathClash])
    #expect(try await store.run() == 1)
    #expect(try await reported.output.run() == "2")
    #expect(store.currentValue == 1)
  }
}
