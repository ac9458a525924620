/// Something that can be put around any request.
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
  /// The request that is modified.
  associatedtype Base: OperationRequest
  /// What a modified run gives.
  associatedtype Value: Sendable = Base.Value
  /// What a modified run fails with.
  associatedtype Failure: Error = Base.Failure

  /// How long a client keeps the store of the request; the default says nothing about it.
  var retention: OperationRetention? { get }

  /// Writes into the context, after the request and the modifiers closer to it have. The default
  /// does nothing.
  func setup(context: inout OperationContext, using base: Base)

  /// Runs the modified request.
  func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    using base: Base,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value
}

extension OperationModifier {
  /// Says nothing about it.
  public var retention: OperationRetention? { nil }

  /// Writes nothing.
  public func setup(context: inout OperationContext, using base: Base) {}
}

extension OperationModifier where Value == Base.Value, Failure == Base.Failure {
  /// Runs the request as it is: the default for a modifier that only writes into the context.
  public func run(
    isolation: isolated (any Actor)?,
    in context: OperationContext,
    using base: Base,
    with continuation: OperationContinuation<Value, Failure>
  ) async throws(Failure) -> Value {
    try await base.run(isolation: isolation, in: context, with: continuation)
  }
}

extension OperationRequest {
  /// Puts a modifier around the request.
  public func modifier<Modifier: OperationModifier<Self>>(
    _ modifier: Modifier
  ) -> ModifiedOperation<Self, Modifier> {
    ModifiedOperation(base: self, modifier: modifier)
  }
}
