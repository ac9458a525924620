extension StatefulOperationRequest where State: PersistableState {
  /// Saves the value in the storage of the client, as JSON, and restores it when the program starts again.
  ///
  /// The value appears with the date at which it was fetched, and is stale if it was invalidated, or as follows
  /// from that date. It is loaded when the store is created, before the store decides
  /// whether to run; until then, `isRestoring` of the state is `true`. A fetch that a caller requests does
  /// not wait for it. A loaded value never replaces a newer one. Changes are saved after a second, together
  /// with those of other stores. Optimistic edits are not saved. A reset, and
  /// ``OperationClient/clearStores(matching:where:)``, remove what was saved; retention does not.
  ///
  /// Without a storage of the client this does nothing.
  ///
  /// - Parameters:
  ///   - name: The name under which the value is saved. `nil`, the default, derives it from the path, whose
  ///     elements must be numbers, texts, identifiers, or structures and cases of such. For other paths,
  ///     and for `private` and local types, whose names differ from build to build, this is reported, and
  ///     nothing is saved.
  ///   - maxAge: The age from which a saved value is dropped when it is loaded; `nil`, the default, is none.
  ///     A negative one is reported, and zero is used.
  ///   - version: The version of the encoding. What was saved with a lower one is dropped, and what was saved
  ///     with a higher one is reported and set aside.
  public func persisted(
    as name: String? = nil, maxAge: Duration? = nil, version: Int = 0
  ) -> Configured where State.SavedValue: Codable {
    persisted(as: name, maxAge: maxAge, version: version, coding: .json)
  }

  /// Saves the value in the storage of the client, as ``persisted(as:maxAge:version:)`` does, in an encoding
  /// of its own.
  ///
  /// - Parameters:
  ///   - name: The name under which the value is saved; `nil`, the default, derives it from the path.
  ///   - maxAge: The age from which a saved value is dropped; `nil`, the default, is none.
  ///   - version: The version of the encoding.
  ///   - coding: The encoding, which can also decode values of lower versions.
  public func persisted(
    as name: String? = nil, maxAge: Duration? = nil, version: Int = 0,
    coding: StorageCoding<State.SavedValue>
  ) -> Configured { saved(name, maxAge, version, coding) }
}

extension MutationRequest {
  /// Saves each call in the storage of the client before the request is called, with the arguments as JSON,
  /// and removes it when the call has ended. ``OperationClient/resumeMutations(_:)`` makes the calls again
  /// that a program could not end.
  ///
  /// A call can arrive twice, if the program ended after the server took it and before it was removed. The
  /// request can send ``OperationContext/operationCallID``, by which a server recognises it. Calls in one
  /// ``OperationRequest/serialized(in:)`` scope arrive in the order in which they were made.
  ///
  /// Without a storage of the client this does nothing.
  ///
  /// - Parameters:
  ///   - name: The name of the mutation in the storage. `nil`, the default, derives it from the path.
  ///   - maxAge: The age from which a call is dropped, and reported, instead of made again; `nil`, the
  ///     default, is none. A negative one is reported, and zero is used.
  ///   - version: The version of the arguments. A call of a lower one is kept, and reported, unless the
  ///     encoding decodes it.
  public func persisted(
    as name: String? = nil, maxAge: Duration? = nil, version: Int = 0
  ) -> Configured where Arguments: Codable {
    persisted(as: name, maxAge: maxAge, version: version, coding: .json)
  }

  /// Saves each call in the storage of the client, as ``persisted(as:maxAge:version:)`` does, in an encoding
  /// of its own.
  ///
  /// - Parameters:
  ///   - name: The name of the mutation in the storage; `nil`, the default, derives it from the path.
  ///   - maxAge: The age from which a call is dropped; `nil`, the default, is none.
  ///   - version: The version of the arguments.
  ///   - coding: The encoding of the arguments.
  public func persisted(
    as name: String? = nil, maxAge: Duration? = nil, version: Int = 0,
    coding: StorageCoding<Arguments>
  ) -> Configured { saved(name, maxAge, version, coding) }
}

extension StatefulOperationRequest {
  fileprivate func saved(
    _ name: String?, _ maxAge: Duration?, _ version: Int, _ coding: any Sendable
  ) -> Configured {
    let maxAge = maxAge?.checked(for: "The age of what is saved of \(requestType)")
    let persistence = PersistenceSettings(
      name: name, maxAge: maxAge, version: version, coding: coding)
    return settings { $0.persistence = persistence }
  }
}
