import Operation

/// The failure of the requests of the tests.
struct Refused: Error, Hashable {
  var attempt = 0
}

/// What the requests of a test do, and the contexts of their attempts.
final class Script: Sendable {
  typealias Answer =
    @Sendable (Int, OperationContext, Continuation) async -> Result<Int, Refused>
  typealias Continuation = @Sendable (Result<Int, Refused>) -> Void

  /// The context of each attempt.
  let contexts = EventLog<OperationContext>()
  private let answer: Answer

  /// - Parameter answer: Returns the result of an attempt, whose number begins with 1.
  init(_ answer: @escaping Answer) {
    self.answer = answer
  }

  /// Fails the first attempts, and then returns the number of the attempt.
  convenience init(failures: Int = 0) {
    self.init { attempt, _, _ in
      attempt <= failures ? .failure(Refused(attempt: attempt)) : .success(attempt)
    }
  }

  var attempts: Int { contexts.count }

  func run(
    in context: OperationContext, yield: @escaping Continuation
  ) async -> Result<Int, Refused> {
    await answer(contexts.append(context), context, yield)
  }
}

/// A query whose failure is any error.
struct OpenQuery: QueryRequest {
  let script: Script
  var path: OperationPath = ["open"]

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    try await script.run(in: context) { continuation.yield(with: $0.mapError { $0 }) }.get()
  }
}

/// A query that fails with one type of error only.
struct TypedQuery: QueryRequest {
  let script: Script
  var path: OperationPath = ["typed"]

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, Refused>
  ) async throws(Refused) -> Int {
    try await script.run(in: context) { continuation.yield(with: $0) }.get()
  }
}

/// A request that cannot have a store.
struct PlainRequest: OperationRequest {
  let script: Script

  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Int, Refused>
  ) async throws(Refused) -> Int {
    try await script.run(in: context) { continuation.yield(with: $0) }.get()
  }
}

/// A request that cannot have a store, whose failure is any error.
struct OpenPlainRequest: OperationRequest {
  let script: Script

  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    try await script.run(in: context) { continuation.yield(with: $0.mapError { $0 }) }.get()
  }
}

extension OperationContext {
  /// Returns a context with a clock.
  static func timed(by clock: any OperationClock) -> OperationContext {
    var context = OperationContext()
    context.operationClock = clock
    return context
  }

  /// A value that can be compared, and is 0 unless written.
  var fixtureNumber: Int {
    get { self[FixtureNumberKey.self] }
    set { self[FixtureNumberKey.self] = newValue }
  }

  /// Returns a context with a number.
  static func number(_ number: Int) -> OperationContext {
    var context = OperationContext()
    context.fixtureNumber = number
    return context
  }

  private enum FixtureNumberKey: Key {
    static var defaultValue: Int { 0 }
  }
}

/// Calls a request again after a failure.
struct Again<Base: OperationRequest>: OperationModifier {
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    do throws(Base.Failure) {
      return try await base.run(isolation: isolation, in: context, with: continuation)
    } catch {
      return try await base.run(isolation: isolation, in: context, with: continuation)
    }
  }
}
