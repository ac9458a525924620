/// The types by which a client decides whether two requests on one path share a store.
struct RequestType: Sendable, Equatable {
  /// The type of the request without its modifiers. Reports contain its name.
  let request: any Any.Type
  let state: any Any.Type

  static func == (lhs: RequestType, rhs: RequestType) -> Bool {
    lhs.request == rhs.request && lhs.state == rhs.state
  }
}

extension RequestType {
  init<Request: StatefulOperationRequest>(of request: Request) {
    self.init(request: request.requestType, state: Request.State.self)
  }
}

/// The request type of a request that transforms one whose request type is `Base`.
private enum Transformed<Base> {}

extension StatefulOperationRequest {
  /// The request type of a request that transforms the value or the failure of this one.
  var transformedRequestType: any Any.Type {
    func transformed<Base>(_: Base.Type) -> any Any.Type { Transformed<Base>.self }
    let base = requestType
    return transformed(base)
  }
}
