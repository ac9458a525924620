public import ReactiveStreams

/// A source outside a store that sets its values, such as a socket or a watched file.
///
/// ```swift
/// struct Scores: OperationController {
///   typealias State = QueryState<Int, any Error>
///   let socket: ScoreSocket
///
///   func control(with controls: OperationControls<State>) -> OperationSubscription {
///     let listener = socket.listen { score in controls.yield(score) }
///     return OperationSubscription { listener.close() }
///   }
/// }
///
/// let query = ScoreQuery().controlled(by: Scores(socket: socket))
/// ```
///
/// A store retains its controllers. Its controls refer to the store weakly, so a controller may keep
/// them. Each store of a request has the same controllers.
///
/// The methods of a controller are called on any thread with no lock held, for one store by one thread
/// at a time. They may call the store.
public protocol OperationController<State>: Sendable {
  /// The state of the stores that the controller controls.
  associatedtype State: OperationState

  /// Starts to control a store. Called once for each store, when the client has added it, or when it is
  /// created without a client.
  ///
  /// - Parameter controls: What the controller may do to the store.
  /// - Returns: A subscription that is cancelled when the store is deallocated. The controls have no
  ///   effect after that.
  func control(with controls: OperationControls<State>) -> OperationSubscription

  /// Handles that the store got its first subscriber. The default does nothing.
  ///
  /// It is called before the run that the subscriber may start. If another thread is calling the
  /// controllers of the store, that thread makes this call when it is done. Calls for the first and
  /// the last subscriber alternate. An observation that ends before its first call is not reported.
  func observationBegan(with controls: OperationControls<State>)

  /// Handles that the store lost its last subscriber. The default does nothing.
  ///
  /// It is called before the store is deallocated, in the same order as `observationBegan(with:)`.
  func observationEnded(with controls: OperationControls<State>)
}

extension OperationController {
  /// Does nothing.
  public func observationBegan(with controls: OperationControls<State>) {}
  /// Does nothing.
  public func observationEnded(with controls: OperationControls<State>) {}
}

/// The access that a controller has to its store.
///
/// The controls can be used from any thread. They do not retain the store, and have no effect when it
/// was deallocated.
public struct OperationControls<State: OperationState>: Sendable {
  private weak let store: OperationStore<State>?

  /// The path of the store.
  public let path: OperationPath

  init(_ store: OperationStore<State>) {
    self.store = store
    path = store.path
  }

  /// The context of the store; an empty one when the store was deallocated.
  public var context: OperationContext { store?.context ?? OperationContext() }

  /// A Boolean value that indicates whether the store has subscribers.
  public var isObserved: Bool { (store?.subscriberCount ?? 0) > 0 }

  /// The state of the store; `nil` when the store was deallocated.
  ///
  /// During a transaction of this thread, it is the state with what was written so far.
  public var state: State? { store?.state }

  /// Calls `body` with exclusive access to the store, as one transaction, so that a value can be read and
  /// changed while no other thread writes.
  ///
  /// ```swift
  /// controls.withExclusiveAccess {
  ///   if let score = controls.state?.currentValue { controls.yield(score + 1) }
  /// }
  /// ```
  ///
  /// Subscribers are notified once, at the end. `body` must not block: other writers wait for it. What it
  /// has written remains if it throws.
  ///
  /// - Parameter body: Called at once, on this thread; not called when the store was deallocated.
  /// - Returns: What `body` returns; `nil` when the store was deallocated.
  /// - Throws: What `body` throws.
  @discardableResult
  public func withExclusiveAccess<Output>(_ body: () throws -> Output) rethrows -> Output? {
    try store?.withExclusiveAccess(body)
  }

  /// Sets a value, as ``OperationStore/setResult(to:using:)`` does.
  public func yield(_ value: State.StateValue) { yield(with: .success(value)) }

  /// Sets an error, as ``OperationStore/setResult(to:using:)`` does. The value is kept.
  public func yield(error: State.Failure) { yield(with: .failure(error)) }

  /// Sets a result, as ``OperationStore/setResult(to:using:)`` does.
  public func yield(with result: Result<State.StateValue, State.Failure>) {
    store?.setResult(to: result)
  }

  /// Starts a run for the subscribers of the store.
  ///
  /// It does nothing if the store has no subscribers, if they hold a lease on a run already, or if the
  /// condition of automatic running is not satisfied.
  public func rerun() { store?.runForObservers(cause: .rerun) }

  /// Marks the value as out of date, as ``OperationStore/invalidate()`` does.
  ///
  /// The result of a run in flight stays out of date, because the run may have missed the change. One
  /// run follows it if the store has subscribers.
  public func invalidate() { store?.invalidate() }

  /// Resets the store to its initial state, and cancels all runs. It starts no run.
  public func resetState() { store?.resetState() }
}

extension OperationStore {
  /// Attaches the controllers. Called once, when the client has added the store.
  func attachControllers() {
    if settings.values.automatic.controllers.isEmpty { return }
    let new = CurrentWork.without {
      settings.values.automatic.controllers.compactMap { $0(self) }
    }
    commit { $0.observation.notified = (new, false) }
    notifyControllers()
  }

  /// Notifies the controllers whether the store is observed, until they have the current answer.
  func notifyControllers() {
    if settings.values.automatic.controllers.isEmpty { return }
    while let (controllers, isObserved) = commit({ $0.controllersToNotify() }) {
      // A task that a controller starts does not work for the run whose request subscribes.
      CurrentWork.without { for controller in controllers { controller.notify(isObserved) } }
      commit { $0.observation.notified = (controllers, isObserved) }
    }
  }
}
