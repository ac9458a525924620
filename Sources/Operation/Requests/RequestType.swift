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
struct RequestType: Sendable, Equatable {
  /// The type of the request, which reports name.
  let request: any Any.Type
  let state: ObjectIdentifier

  init<Request: StatefulOperationRequest>(of request: Request) {
    self.init(request: request.requestType, state: Request.State.self)
  }

  init<State: OperationState>(request: any Any.Type, state: State.Type) {
    self.request = request
    self.state = ObjectIdentifier(state)
  }

  static func == (lhs: RequestType, rhs: RequestType) -> Bool {
    lhs.request == rhs.request && lhs.state == rhs.state
  }
}
