import Testing

@testable import Operation

private final class Reference: Sendable {}

/// A value that is not equatable.
private struct Unlike: Sendable {
  let name: String
}

extension OperationContext {
  fileprivate var region: String {
    get { self[RegionKey.self] }
    set { self[RegionKey.self] = newValue }
  }

  fileprivate var limit: Int? {
    get { self[LimitKey.self] }
    set { self[LimitKey.self] = newValue }
  }

  fileprivate var reference: Reference? {
    get { self[ReferenceKey.self] }
    set { self[ReferenceKey.self] = newValue }
  }

  fileprivate var unlike: Unlike? {
    get { self[UnlikeKey.self] }
    set { self[UnlikeKey.self] = newValue }
  }

  private enum UnlikeKey: Key {
    static var defaultValue: Unlike? { nil }
  }

  private enum RegionKey: Key {
    static var defaultValue: String { "eu" }
  }

  private enum LimitKey: Key {
    static var defaultValue: Int? { 5 }
  }

  private enum ReferenceKey: Key {
    static var defaultValue: Reference? { nil }
  }
}

@Suite("OperationContext") struct OperationContextTests {
  @Test("A key without a written value returns its default")
  func defaults() {
    let context = OperationContext()
    #expect(context.region == "eu")
    #expect(context.limit == 5)
    #expect(context.operationRun == nil)
    #expect(context.operationClient == nil)
    #expect(context.operationClock is SystemClock)
    #expect(context.operationRetryIndex == 0)
    #expect(context.operationMaxRetries == 0)
    #expect(context.isLastRetryAttempt)
  }

  @Test("The last value that was written for a key is returned")
  func overwriting() {
    var context = OperationContext()
    context.region = "us"
    context.limit = 7
    context.region = "asia"
    #expect(context.region == "asia")
    #expect(context.limit == 7)
  }

  @Test("A written nil is a value, and not the default")
  func writtenNil() {
    var context = OperationContext()
    context.limit = nil
    #expect(context.limit == nil)
  }

  @Test("A copy is independent of the original from the first write on")
  func copies() {
    var original = OperationContext()
    original.region = "us"
    original.limit = 1
    var copy = original
    copy.region = "asia"
    #expect(original.region == "us")
    #expect(copy.region == "asia")
    original.limit = 2
    #expect(copy.limit == 1)
  }

  @Test("Ten thousand writes of one key take no more space than one")
  func writesDoNotGrow() {
    var context = OperationContext()
    context.limit = 1
    for number in 0..<10_000 { context.region = "\(number)" }
    #expect(context.region == "9999")
    #expect(context.limit == 1)
    #expect(context.writtenKeyCount == 2)
  }

  @Test("A context over another one has its own values, and for all other keys those of the other")
  func over() {
    var base = OperationContext()
    base.region = "us"
    base.limit = 1
    var top = OperationContext()
    top.region = "asia"
    #expect(top.over(base).region == "asia")
    #expect(top.over(base).limit == 1)
    #expect(base.over(top).region == "us")
    #expect(OperationContext().over(base).region == "us")
    #expect(base.over(OperationContext()).limit == 1)
    #expect(base.over(base).isEquivalent(to: base))
    #expect(top.over(base).writtenKeyCount == 2)
  }

  @Test("A copy that was changed keeps its values over a base that was changed later")
  func overDescendant() {
    var base = OperationContext()
    base.region = "us"
    var top = base
    top.limit = 9
    base.limit = 1
    base.fixtureNumber = 4
    let merged = top.over(base)
    #expect(merged.region == "us")
    #expect(merged.limit == 9)
    #expect(merged.fixtureNumber == 4)
    #expect(merged.writtenKeyCount == 3)
  }

  @Test("Settings, attempt and run stay those of the base")
  func overKeepsSettings() {
    var base = OperationContext().beginning(
      TaskNode(cause: .poll), input: nil, over: OperationContext())
    base.settings.values.retry.limit = 3
    base.attempt.index = 1
    var top = OperationContext()
    top.settings.values.retry.limit = 9
    top.settings.values.maxHistory = 9
    let merged = top.over(base)
    #expect(merged.settings.values.retry.limit == 3)
    #expect(merged.settings.values.maxHistory == 100)
    #expect(merged.operationRetryIndex == 1)
    #expect(merged.operationRun?.cause == .poll)
  }

  @Test("Contexts are equivalent if equal or identical values were written")
  func equivalence() {
    #expect(OperationContext().isEquivalent(to: OperationContext()))
    #expect(OperationContext.number(1).isEquivalent(to: .number(1)))
    #expect(!OperationContext.number(1).isEquivalent(to: .number(2)))
    #expect(!OperationContext.number(1).isEquivalent(to: OperationContext()))
    #expect(!OperationContext().isEquivalent(to: .number(1)))
  }

  @Test("Equivalence does not depend on the order of the writes")
  func equivalenceOrder() {
    var one = OperationContext.number(1)
    one.region = "us"
    var other = OperationContext()
    other.region = "us"
    other.fixtureNumber = 1
    #expect(one.isEquivalent(to: other))
    other.limit = nil
    #expect(!one.isEquivalent(to: other))
    #expect(!other.isEquivalent(to: one))
  }

  @Test("One object written into two contexts makes them equivalent, two objects do not")
  func equivalenceOfObjects() {
    let reference = Reference()
    var one = OperationContext()
    one.reference = reference
    let copy = one
    #expect(copy.isEquivalent(to: one))
    let clock = ManualClock()
    #expect(OperationContext.timed(by: clock).isEquivalent(to: .timed(by: clock)))
    #expect(!OperationContext.timed(by: clock).isEquivalent(to: .timed(by: ManualClock())))
  }

  @Test("A value of one write is equivalent in every copy, and over every base")
  func equivalenceOfOneWrite() {
    var base = OperationContext.number(1)
    base.region = "us"
    var one = base
    one.unlike = Unlike(name: "one")
    one.fixtureNumber = 2
    var other = one
    // Rebuilds the list that contains the other value.
    other.region = "eu"
    other.region = "us"
    #expect(one.isEquivalent(to: other))
    #expect(one.over(base).isEquivalent(to: one.over(base)))
    #expect(one.over(base).isEquivalent(to: other))
    other.unlike = Unlike(name: "one")
    #expect(!one.isEquivalent(to: other))
  }

  @Test(
    "Optional objects are equivalent if they are identical or `nil`, and system clocks always are")
  func equivalenceOfOptionals() {
    func context(_ reference: Reference?) -> OperationContext {
      var context = OperationContext.timed(by: SystemClock())
      context.reference = reference
      return context
    }
    let reference = Reference()
    #expect(context(reference).isEquivalent(to: context(reference)))
    #expect(!context(reference).isEquivalent(to: context(Reference())))
    #expect(!context(reference).isEquivalent(to: context(nil)))
    #expect(context(nil).isEquivalent(to: context(nil)))
    #expect(!context(nil).isEquivalent(to: .timed(by: ManualClock())))
  }

  @Test("A store of a client passes that client to its runs, whatever context the caller passes")
  func clientOfStore() async throws {
    let client = OperationClient(defaults: .testing)
    let other = OperationClient(defaults: .testing)
    let script = Script()
    let outer = Query(path: ["outer"]) { context in
      try await client.store(for: OpenQuery(script: script)).run(using: context)
    }
    try await other.fetch(outer)
    #expect(script.contexts.values.first?.operationClient === client)
    // A store without a client takes that of the context.
    let detached = OperationStore.detached(query: OpenQuery(script: script))
    try await detached.run(using: other.store(for: outer).context)
    #expect(script.contexts.values.last?.operationClient === other)
  }

  @Test("A context that is set on a store has the store's client, and no value of the one before")
  func setContext() async throws {
    let script = Script()
    let (client, other) = (OperationClient(context: .number(3)), OperationClient())
    let store = client.store(for: OpenQuery(script: script))
    for context in [OperationContext(), other.store(for: OpenQuery(script: script)).context] {
      #expect(store.context.fixtureNumber == 3 || script.attempts > 0)
      store.context = context
      try await store.run()
      let last = try #require(script.contexts.values.last)
      #expect(last.operationClient === client && last.fixtureNumber == 0)
    }
  }

  @Test("A store or a client that is created with the context of a run is in no run")
  func leavesRun() async throws {
    let script = Script(failures: 1)
    _ = try await OpenQuery(script: script).retry(limit: 1).backoff(.noBackoff).run()
    let context = try #require(script.contexts.values.last)
    #expect(context.operationRetryIndex == 1 && context.operationRun != nil)
    let query = OpenQuery(script: script)
    let changed = OperationStore.detached(query: query)
    changed.context = context
    let client = OperationClient(context: context)
    let begun = OperationStore.detached(query: query, initialContext: context)
    for store in [begun, changed, client.store(for: query)] {
      #expect(store.context.operationRun == nil && store.context.operationRetryIndex == 0)
    }
  }

  @Test("A context inside a run contains the run, its cause and its context")
  func operationRun() async throws {
    let script = Script()
    let task = OperationStore.detached(query: OpenQuery(script: script)).runTask(using: .number(4))
    try await task.runIfNeeded()
    let run = try #require(script.contexts.values.first?.operationRun)
    #expect(run.id == task.id)
    #expect(run.cause == .fetch)
    #expect(run.context.fixtureNumber == 4)
    _ = try await OpenQuery(script: script).run()
    let second = try #require(script.contexts.values.last?.operationRun)
    #expect(second.id > run.id)
  }

  @Test("A context of one request passes none of its settings to the run of another one")
  func settingsStay() async throws {
    let clock = ManualClock()
    let inner = Script(failures: 1)
    let outer = Script()
    let client = OperationClient(defaults: .testing, clock: clock)
    let store = client.store(for: OpenQuery(script: inner).retry(limit: 1).backoff(.noBackoff))
    _ = try await OpenQuery(script: outer).retry(limit: 9).run(in: .number(3))
    let foreign = try #require(outer.contexts.values.first)
    #expect(foreign.operationMaxRetries == 9)
    #expect(try await store.run(using: foreign) == 2)
    #expect(inner.contexts.values.map(\.operationMaxRetries) == [1, 1])
    #expect(inner.contexts.values.map(\.fixtureNumber) == [3, 3])
    let third = Script(failures: 9)
    await #expect(throws: Refused(attempt: 1)) {
      try await OpenQuery(script: third).run(in: foreign)
    }
  }

  private final class Trace: Sendable {}

  private enum TraceKey: OperationContext.Key {
    static var defaultValue: Trace? { nil }
  }

  @Test("Contexts with different objects that have no `==` differ in their hashes")
  func hashesOfObjects() {
    let contexts = (0..<100).map { _ in
      var context = OperationContext()
      context[TraceKey.self] = Trace()
      return context
    }
    #expect(Set(contexts.map(\.valuesHash)).count == 100)
    var again = OperationContext()
    again[TraceKey.self] = contexts[0][TraceKey.self]
    #expect(again.valuesHash == contexts[0].valuesHash)
    #expect(again.hasEquivalentValues(to: contexts[0]))
  }
}
