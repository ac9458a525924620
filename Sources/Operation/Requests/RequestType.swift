/// The type of a request that transforms another one; modifiers below it make no difference.
enum Transformed<Base> {}

extension StatefulOperationRequest {
  /// What ``requestType`` is for a request that transforms this one.
  var transformedRequestType: any Any.Type {
    func transformed<Base>(_: Base.Type) -> any Any.Type { Transformed<Base>.self }
    return _openExistential(requestType, do: transformed)
  }
}

/// What two requests have to have in common to share a store.
@usableFromInline struct RequestType: Sendable, Equatable {
  /// The type of the request, which reports name.
  @usableFromInline let request: any Any.Type
  @usableFromInline let state: ObjectIdentifier

  @inlinable init<Request: StatefulOperationRequest>(of request: Request) {
    self.init(request: request.requestType, state: Request.State.self)
  }

  @inlinable init<State: OperationState>(request: any Any.Type, state: State.Type) {
    self.request = request
    self.state = ObjectIdentifier(state)
  }

  @inlinable static func == (lhs: RequestType, rhs: RequestType) -> Bool {
    lhs.request == rhs.request && lhs.state == rhs.state
  }
}
