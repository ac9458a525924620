/// A request whose data is kept in a store, under a path.
public protocol StatefulOperationRequest<Value, State>: OperationRequest {
  /// The state of the store.
  associatedtype State: OperationState
  where State.OperationValue == Value, State.Failure == Failure

  /// Where a client keeps the store of the request.
  ///
  /// Requests of one type on one path share a store. The default is the request itself where it is
  /// `Hashable`, and its `id` where it is only `Identifiable`.
  var path: OperationPath { get }

  /// The type that tells whether two requests on one path are the same request; the default is the
  /// request's own type, and modifiers give the type that they modify.
  var requestType: any Any.Type { get }

  /// How long a client keeps the store when nobody uses it; `nil`, the default, leaves that to the
  /// client.
  var retention: OperationRetention? { get }

  /// Writes what the state of this kind of request needs into the context of the store; the
  /// protocol of the kind does it, and not the request. The default does nothing.
  func setupState(context: inout OperationContext)
}

extension StatefulOperationRequest {
  /// The request's own type.
  public var requestType: any Any.Type { Self.self }

  /// Leaves it to the client.
  public var retention: OperationRetention? { nil }

  /// Writes nothing.
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
