public import ReactiveStreams

/// Something outside of a store that feeds it, such as a socket or a file that is watched.
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
/// The store keeps its controllers, and the controls know the store only weakly: a controller may
/// keep them. Its methods are called on any thread with no lock held, by one thread at a time for
/// one store, and may use the store as they like. Each store of a request has the same controllers.
public protocol OperationController<State>: Sendable {
  /// The state of the store that is controlled.
  associatedtype State: OperationState

  /// Takes control of a store; called once for each store, when others can find it.
  ///
  /// - Returns: What is cancelled when the store goes away; then the controls do nothing any more.
  func control(with controls: OperationControls<State>) -> OperationSubscription

  /// Somebody observes the store whom nobody observed; called before the run that may come of it.
  ///
  /// Unless another thread tells the controllers something at that moment: then that thread
  /// goes on with this call. Begin and end take turns, and what is over before it could be told is
  /// not.
  func observationBegan(with controls: OperationControls<State>)

  /// Nobody observes the store any more; called before the store goes away.
  func observationEnded(with controls: OperationControls<State>)
}

extension OperationController {
  /// Does nothing.
  public func observationBegan(with controls: OperationControls<State>) {}
  /// Does nothing.
  public func observationEnded(with controls: OperationControls<State>) {}
}

/// What a controller does to its store; nothing, when the store has gone away.
public struct OperationControls<State: OperationState>: Sendable {
  private weak let store: OperationStore<State>?

  /// Where a client keeps the store.
  public let path: OperationPath

  init(_ store: OperationStore<State>) {
    self.store = store
    path = store.path
  }

  /// The context of the store; an empty one when the store has gone away.
  public var context: OperationContext { store?.context ?? OperationContext() }

  /// Whether anybody observes the store.
  public var isObserved: Bool { (store?.subscriberCount ?? 0) > 0 }

  /// Sets a value, as ``OperationStore/setResult(to:using:)`` does.
  public func yield(_ value: State.StateValue) {
    yield(with: .success(value))
  }

  /// Sets what went wrong; the value stays.
  public func yield(error: State.Failure) {
    yield(with: .failure(error))
  }

  /// Sets a result, as ``OperationStore/setResult(to:using:)`` does.
  public func yield(with result: Result<State.StateValue, State.Failure>) {
    store?.setResult(to: result)
  }

  /// Runs the request for those who observe the store, unless they wait for a run already; does
  /// nothing if nobody observes it, or the condition of automatic running does not hold.
  public func rerun() {
    store?.runForObservers(cause: .rerun)
  }

  /// Marks the value as out of date, as ``OperationStore/invalidate()`` does: what is under way may
  /// have missed a change, and so one run follows it.
  public func invalidate() {
    store?.invalidate()
  }

  /// Goes back to the initial state, and cancels all runs; starts none.
  public func resetState() {
    store?.resetState()
  }
}

extension OperationStore {
  /// Gives the store to its controllers; called once, when others can find it.
  func attachControllers() {
    guard isControlled else { return }
    let controllers = context.settings.values.controllers.compactMap { attach in
      let controller = attach(self)
      if controller == nil {
        reportStateMismatch(of: "A controller", so: "it does not get the store")
      }
      return controller
    }
    commit { $0.told(controllers, isObserved: false) }
    tellControllers()
  }

  /// Tells the controllers whether somebody observes, until they know how it is.
  func tellControllers() {
    guard isControlled else { return }
    while let (controllers, isObserved) = commit({ $0.nextTelling() }) {
      for controller in controllers { controller.tell(isObserved) }
      commit { $0.told(controllers, isObserved: isObserved) }
    }
  }
}
