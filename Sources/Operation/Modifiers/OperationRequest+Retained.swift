/// Says how long a client keeps the store of a request.
public struct RetentionModifier<Base: OperationRequest>: OperationModifier {
  /// How long the store stays when nobody uses it.
  public let retention: OperationRetention?
}

extension StatefulOperationRequest {
  /// Says how long the client keeps the store of this request when nobody uses it, in the place of
  /// the rule of the client.
  ///
  /// Of the retentions that the requests for one path ask for, the longest wins; a request without
  /// this modifier asks for that of the client.
  public func retained(
    _ retention: OperationRetention
  ) -> ModifiedOperation<Self, RetentionModifier<Self>> {
    modifier(RetentionModifier(retention: retention))
  }
}
