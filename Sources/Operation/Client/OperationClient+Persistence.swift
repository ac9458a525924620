import ReactiveStreams

extension OperationClient {
  /// The calls of persisted mutations that have not ended. Without a storage there are none.
  public var outbox: OperationOutbox {
    hub.outbox ?? OperationOutbox(MemoryStorage(), clock: clock, closing: hub.closing)
  }

  /// Waits until the values and calls that have changed are in the storage.
  ///
  /// - Throws: What the storage throws, or `CancellationError` if the task is cancelled. What was not saved
  ///   is tried again later.
  nonisolated(nonsending) public func flush() async throws {
    do { try await hub.outbox?.flush() } catch {
      // The values are saved even if the storage refuses a call.
      try? await hub.valueWriter?.flush()
      throw error
    }
    try await hub.valueWriter?.flush()
  }

  /// Makes the calls of persisted mutations again that earlier programs could not end.
  ///
  /// ```swift
  /// try await client.resumeMutations { outbox in
  ///   outbox.register(CreatePost())
  ///   outbox.register(DeletePost())
  /// }
  /// ```
  ///
  /// Calls are made in the order in which they were made first, and wait for others of their scope and for
  /// a connection as they did then. Call this before new calls of these mutations are made: only then do
  /// those follow. A call whose mutation is not registered is reported, and stays. One that is older than
  /// the `maxAge` of its mutation is reported, and dropped. A resumed call that fails stays in
  /// ``outbox``.
  ///
  /// - Parameter register: Registers the mutations. It is called once, before anything is loaded.
  /// - Returns: The calls that are in the outbox then.
  /// - Throws: What the storage throws when it lists or loads the calls.
  @discardableResult
  nonisolated(nonsending) public func resumeMutations(
    _ register: (inout MutationRegistry) -> Void
  ) async throws -> [OutboxCall] {
    var registry = MutationRegistry(client: self)
    register(&registry)
    guard let outbox = hub.outbox else { return [] }
    try await outbox.resume()
    return outbox.calls
  }

  /// Removes the saved value of a request that has no store. What is saved where another one has a store is
  /// that of the other one.
  func removeSaved<Request: StatefulOperationRequest>(of request: Request) {
    let path = request.path
    guard let writer = hub.valueWriter, Request.State.kind != .mutation, store(with: path) == nil
    else { return }
    let context = request.settingUp(context(for: Request.State.kind, at: path))
    let name = context.settings.values.persistence?.name
    guard let key = name.map(StorageKey.value(named:)) ?? StorageKey.value(at: path) else { return }
    writer.remove(key)
  }

  /// Removes what is saved for a path.
  ///
  /// - Parameter isPrefix: Whether what is saved below the path is removed, too.
  func removeSaved(at path: OperationPath, isPrefix: Bool) {
    guard let writer = hub.valueWriter, let key = StorageKey.value(at: path) else { return }
    writer.remove(key, isPrefix: isPrefix)
  }
}

/// The mutations whose calls are made again after a restart, see
/// ``OperationClient/resumeMutations(_:)``.
public struct MutationRegistry {
  fileprivate let client: OperationClient

  /// Registers a mutation.
  ///
  /// - Parameter request: The request, with or without its `persisted()`.
  public mutating func register<Request: MutationRequest>(_ request: Request)
  where Request.Arguments: Codable {
    register(request) { _, _, outcome in try await outcome() }
  }

  /// Registers a mutation that shows what its calls will change until they have ended.
  ///
  /// ```swift
  /// outbox.register(CreatePost()) { post, client, outcome in
  ///   try await client.store(for: FeedQuery()).optimistically { posts in
  ///     // The server may have taken the call before the program ended.
  ///     if posts?.contains(where: { $0.id == post.id }) == false { posts?.append(post) }
  ///   } while: {
  ///     try await outcome()
  ///   }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request, with or without its `persisted()`.
  ///   - show: Called once for each resumed call with its arguments, the client, and a function that makes
  ///     the call and returns its value, which it has to call once. What it returns or throws is dropped: the
  ///     outbox has the failure of the call.
  public mutating func register<Request: MutationRequest, Output>(
    _ request: Request,
    showing show:
      @escaping @Sendable (
        Request.Arguments, OperationClient,
        @escaping @Sendable () async throws -> Request.MutateValue
      ) async throws -> Output
  ) where Request.Arguments: Codable {
    let given = request.settingUp(OperationContext()).settings.values.persistence
    let settings = given ?? PersistenceSettings(coding: StorageCoding<Request.Arguments>.json)
    guard let name = settings.name ?? StorageKey.description(of: request.path),
      let coding = settings.coding as? StorageCoding<Request.Arguments>
    else {
      OperationIssue.report(
        .unresumedCall,
        "\(Request.self) cannot be registered: its path has no stable form, and it has no name.")
      return
    }
    client.hub.outbox?.register(name, maxAge: settings.maxAge) { [weak client] resumed in
      guard let client, let call = client.outbox.call(of: resumed.entry) else { return }
      let arguments: Request.Arguments
      do {
        let saved = try coding.value(
          of: call.arguments, version: call.version, expected: settings.version)
        guard let saved else {
          throw PersistenceError.otherVersion(saved: call.version, expected: settings.version)
        }
        arguments = saved
      } catch {
        OperationIssue.report(
          .unreadableEntry, "A call of \(name) stays, and is not made again: \(error)")
        return
      }
      let store =
        given == nil ? client.store(for: request.persisted()) : client.store(for: request)
      _ = try await show(arguments, client) { try await store.resume(resumed, with: arguments) }
    }
  }
}
