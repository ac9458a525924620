/// A change of how a request runs, which can be applied to any request.
///
/// ```swift
/// struct Announced<Base: OperationRequest>: OperationModifier {
///   func run(
///     isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
///     with continuation: OperationContinuation<Base.Value, Base.Failure>
///   ) async throws(Base.Failure) -> Base.Value {
///     print("attempt", context.operationRetryIndex)
///     return try await base.run(isolation: isolation, in: context, with: continuation)
///   }
/// }
///
/// let request = query.modifier(Announced())
/// ```
public protocol OperationModifier<Base>: Sendable {
  /// The type of the request that is modified.
  associatedtype Base: OperationRequest
  /// The type of the value that a modified run returns.
  associatedtype Value: Sendable = Base.Value
  /// The type of the error that a modified run throws.
  associatedtype Failure: Error = Base.Failure

  /// The time that a client retains the unused store of the request; `nil`, the default, stands for
  /// the rule of the request or the client.
  var retention: OperationRetention? { get }

  /// Writes into the context of the request's runs.
  ///
  /// It is called as ``OperationRequest/setup(context:)`` of the modified request, with no lock held, after
  /// the setup of the request and of the modifiers that were applied before this one. The default
  /// does nothing.
  func setup(context: inout OperationContext, using base: Base)

  /// Runs the modified request.
  ///
  /// - Parameters:
  ///   - isolation: The actor that the run is isolated to. A store passes `nil`.
  ///   - context: The context of the run.
  ///   - base: The request.
  ///   - continuation: Receives values and failures before the final result.
  /// - Throws: The failure of the modified request.
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value
}

extension OperationModifier {
  /// No retention of its own.
  public var retention: OperationRetention? { nil }

  /// Does nothing.
  public func setup(context: inout OperationContext, using base: Base) {}
}

extension OperationModifier where Value == Base.Value, Failure == Base.Failure {
  /// Runs the request without a change: the default of a modifier that only writes into the
  /// context.
  public func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await base.run(isolation: isolation, in: context, with: continuation)
  }
}

extension OperationRequest {
  /// Applies a modifier to the request.
  public func modifier<Modifier: OperationModifier<Self>>(
    _ modifier: Modifier
  ) -> ModifiedOperation<Self, Modifier> { ModifiedOperation(base: self, modifier: modifier) }
}
