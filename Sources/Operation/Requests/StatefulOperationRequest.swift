/// A request whose data is held by a store, under a path.
public protocol StatefulOperationRequest<Value, State>: OperationRequest {
  /// The state of the store.
  associatedtype State: OperationState
  where State.OperationValue == Value, State.Failure == Failure

  /// The path under which a client holds the store of the request.
  ///
  /// Requests of one type on one path share a store. The default is the request itself where it is
  /// `Hashable`, and its `id` where it is only `Identifiable`.
  var path: OperationPath { get }

  /// The type by which a client decides whether two requests on one path are the same.
  ///
  /// The default is the request's own type. Modifiers return the type of the request that they
  /// modify.
  var requestType: any Any.Type { get }

  /// The time that a client retains the store while it is unused; `nil`, the default, stands for
  /// the client's own rule.
  var retention: OperationRetention? { get }

  /// The type of the state.
  ///
  /// A request that contains another one implements this with the type of the other one's state, and
  /// declares no `State`. Then the type of a property with `@SharedQuery` can be inferred, even if the
  /// other request is opaque.
  static var stateType: State.Type { get }

  /// Writes the settings that the state of this kind of request needs into the context of the
  /// store.
  ///
  /// A protocol such as ``PaginatedRequest`` implements this for its requests. A store calls it
  /// before each call of ``OperationRequest/setup(context:)``, with no lock held. The default does
  /// nothing.
  func setupState(context: inout OperationContext)
}

extension StatefulOperationRequest {
  /// The type of the state.
  public static var stateType: State.Type { State.self }

  /// The request's own type.
  public var requestType: any Any.Type { Self.self }

  /// No retention of its own: the client's rule applies.
  public var retention: OperationRetention? { nil }

  /// Does nothing.
  public func setupState(context: inout OperationContext) {}
}

extension StatefulOperationRequest where Self: Hashable {
  /// A path of one element, the request itself.
  public var path: OperationPath { OperationPath(self) }
}

extension StatefulOperationRequest where Self: Identifiable, ID: Sendable {
  /// A path of one element, the identifier.
  public var path: OperationPath { OperationPath(id) }
}

extension StatefulOperationRequest where Self: Hashable & Identifiable, ID: Sendable {
  /// A path of one element, the request itself.
  public var path: OperationPath { OperationPath(self) }
}
