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
