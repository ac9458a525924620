import ReactiveStreams
import Synchronization

extension OperationClient {
  private static let isCurrentRequired = Atomic(false)

  /// A Boolean value that indicates whether a use of ``shared`` outside of
  /// `withCurrent(_:operation:)` is reported as an `OperationIssue`; `false` by default.
  ///
  /// Set it in tests, where a forgotten client would share its stores with other tests. It applies to the
  /// whole process.
  public static var requiresCurrent: Bool {
    get { isCurrentRequired.load(ordering: .relaxed) }
    set { isCurrentRequired.store(newValue, ordering: .relaxed) }
  }

  @TaskLocal private static var scoped: OperationClient?
  private static let process = OperationClient()

  /// The current client: the one of the innermost `withCurrent(_:operation:)`, or else the client of
  /// the process, which has the standard defaults.
  ///
  /// A task inherits the current client of the task that creates it. A detached task does not.
  public static var shared: OperationClient {
    unreported.reportIfMissing()
    return unreported
  }

  /// The shared client, for what may never use it: no report is made.
  package static var unreported: OperationClient { scoped ?? process }

  /// Reports that this client is used if it is that of the process, and must not be.
  package func reportIfMissing() {
    guard Self.requiresCurrent, self === Self.process else { return }
    OperationIssue.report(
      .missingClient,
      """
      The client of the process is used, though OperationClient.requiresCurrent is set; pass a \
      client, or call this inside OperationClient.withCurrent.
      """)
  }

  /// Makes a client the ``shared`` one for `operation` and the tasks that it starts.
  ///
  /// - Parameters:
  ///   - client: The client.
  ///   - operation: Called once, on the calling thread.
  /// - Returns: What `operation` returns.
  /// - Throws: The error of `operation`.
  public static func withCurrent<Output>(
    _ client: OperationClient, operation: () throws -> Output
  ) rethrows -> Output { try $scoped.withValue(client, operation: operation) }

  /// Makes a client the ``shared`` one for `operation` and the tasks that it starts.
  ///
  /// `operation` runs on the caller's actor.
  ///
  /// - Parameters:
  ///   - client: The client.
  ///   - operation: Called once.
  /// - Returns: What `operation` returns.
  /// - Throws: The error of `operation`.
  nonisolated(nonsending) public static func withCurrent<Output>(
    _ client: OperationClient, operation: nonisolated(nonsending) () async throws -> Output
  ) async rethrows -> Output { try await $scoped.withValue(client, operation: operation) }
}

extension OperationContext {
  /// The client of the store that a run belongs to; `nil` when it was deallocated. A run without a store,
  /// or in a store without a client, has the client that was written into its context, or `nil`.
  ///
  /// A context refers to its client weakly. The runs of a client's store have that client, even if
  /// the context that is passed to them has another one.
  public var operationClient: OperationClient? {
    get { self[ClientKey.self].client }
    set { self[ClientKey.self] = WeakClient(client: newValue) }
  }

  private enum ClientKey: Key {
    static var defaultValue: WeakClient { WeakClient(client: nil) }
  }

  private struct WeakClient: Sendable, Equatable, StoreBound {
    weak let client: OperationClient?

    static func == (lhs: WeakClient, rhs: WeakClient) -> Bool { lhs.client === rhs.client }
  }
}
