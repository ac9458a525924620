/// A store in the index of a client, which it retains or has evicted.
///
/// What ``store`` returns may be the last reference. It must not be released under the lock of the
/// client: the deinitialiser of an evicted store takes that lock, and values are the user's.
enum StoreReference: Sendable {
  /// The client retains the store.
  case retained(OpaqueOperationStore)
  /// The store was evicted. It is found as long as something else retains it.
  case evicted(EvictedStore)

  var id: ObjectIdentifier {
    switch self {
    case .retained(let store): store.id
    case .evicted(let store): store.id
    }
  }

  var type: RequestType {
    switch self {
    case .retained(let store): store.store.erasedRequestType
    case .evicted(let store): store.type
    }
  }

  var isRetained: Bool { retained != nil }

  /// The store, if the client retains it.
  var retained: OpaqueOperationStore? { if case .retained(let store) = self { store } else { nil } }

  /// The store; `nil` if it was evicted, and was released since then.
  var store: OpaqueOperationStore? {
    switch self {
    case .retained(let store): store
    case .evicted(let store): store.store.map(OpaqueOperationStore.init)
    }
  }
}

/// A weak reference to an evicted store, with what is known of it without a look at it.
final class EvictedStore: Sendable {
  let id: ObjectIdentifier
  let type: RequestType
  weak let store: (any ErasedOperationStore)?

  init(_ store: OpaqueOperationStore) {
    (id, type, self.store) = (store.id, store.store.erasedRequestType, store.store)
  }
}
