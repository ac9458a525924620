import ReactiveStreams
import Synchronization

/// How a store runs a request: what the request's modifiers set, and how it is called.
///
/// A store has the rules of the request that it was created for. A request of the same type with other
/// modifiers brings its own, for what it fetches and for as long as it observes.
package final class RequestRules<State: OperationState>: RunRules {
  typealias Call =
    @Sendable (
      OperationContext, OperationContinuation<State.OperationValue, State.Failure>
    ) async -> Result<State.OperationValue, State.Failure>

  /// Identifies the rules of observers. Observers with equal keys share their polls and their runs.
  package struct Key: Sendable, Equatable {
    /// The type of the request with its modifiers.
    let type: any Any.Type
    let modifiers: [any Sendable]

    package static func == (lhs: Key, rhs: Key) -> Bool {
      lhs.type == rhs.type && !zip(lhs.modifiers, rhs.modifiers).contains(where: areDifferent)
    }
  }

  /// What runs begin with: the context of the store when the rules were made, with the settings of the request.
  /// Once another one is set on the store, only its settings apply.
  fileprivate let context: OperationContext
  /// See ``StoreContexts/count``.
  fileprivate let contextCount: Int
  let call: Call
  package let key: Key

  init<Request: StatefulOperationRequest>(
    _ request: Request, in context: OperationContext, contextCount: Int
  ) where Request.State == State {
    self.context = context
    self.contextCount = contextCount
    call = request.storeCall
    key = Key(type: Request.self, modifiers: context.settings.values.modifiers)
  }
}

extension StatefulOperationRequest {
  /// Calls the request, with the retries of the client's defaults unless a modifier makes its own.
  var storeCall: RequestRules<State>.Call {
    { context, continuation in
      do throws(Failure) {
        guard context.settings.isRetriedByStore else {
          return .success(try await run(isolation: nil, in: context, with: continuation))
        }
        return .success(
          try await runAgain(isolation: nil, in: context, with: continuation) { _ in true })
      } catch {
        return .failure(error)
      }
    }
  }

  /// Returns a context with what the request and its state set.
  func settingUp(_ context: consuming OperationContext) -> OperationContext {
    setupState(context: &context)
    setup(context: &context)
    return context
  }
}

extension OperationStore {
  /// Returns the rules of a request that is passed to this store, or `nil` if they are the store's own.
  package func rules<Request: StatefulOperationRequest>(
    of request: Request
  ) -> RequestRules<State>? where Request.State == State {
    if types.modified == Request.self, types.plain == Request.self { return nil }
    let contexts = read { $0.contexts }
    var own = request.settingUp(contexts.base)
    if own.settings.values.serialScope != settings.values.serialScope {
      if own.settings.values.serialScope != nil {
        reportConflict("be serialized in another scope than that", ignoring: "scope")
      }
      own.settings.values.serialScope = settings.values.serialScope
    }
    if State.kind != .mutation, hub.valueWriter != nil, settings.values.persistence == nil,
      own.settings.values.persistence != nil
    {
      reportConflict("be saved, unlike those", ignoring: "persistence")
    }
    return RequestRules(request, in: own, contextCount: contexts.count)
  }

  /// The context that runs by some rules begin with; `nil` stands for the rules of the store.
  func context(by rules: RequestRules<State>?) -> OperationContext {
    read { $0.contexts.context(by: rules) }
  }

  /// Returns a setting of some rules; `nil` stands for those of the store.
  func setting<Value>(
    by rules: RequestRules<State>?, _ read: (RunSettings.Values) -> Value
  ) -> Value {
    if let rules { read(rules.context.settings.values) } else { read(settings.values) }
  }

  /// The key of the rules of the request that the store was created for.
  var ownKey: RequestRules<State>.Key {
    RequestRules<State>.Key(type: types.modified, modifiers: settings.values.modifiers)
  }

  /// Reports once that a rule of a store cannot differ from that of the request it was created for.
  private func reportConflict(_ difference: String, ignoring what: String) {
    guard types.noteConflict(of: what) else { return }
    OperationIssue.report(
      .ruleConflict,
      """
      The runs of \(path) cannot \(difference) of the request that the store was created for; the \
      \(what) of \(types.plain) here is ignored.
      """)
  }
}

/// The contexts of a store.
struct StoreContexts: Sendable {
  /// What runs begin with.
  private(set) var own: OperationContext
  /// What requests that are passed are set up in: the context of the client when the store was created, or the
  /// one that was set since.
  private(set) var base: OperationContext
  /// The number of contexts that were set.
  private(set) var count = 0

  /// Sets a context. The settings of the requests remain.
  mutating func replace(with new: OperationContext) {
    (own, base) = (new.with(own.settings), new.with(base.settings))
    count += 1
  }

  func context<State>(by rules: RequestRules<State>?) -> OperationContext {
    guard let rules else { return own }
    return rules.contextCount == count ? rules.context : own.with(rules.context.settings)
  }
}

extension OperationContext {
  fileprivate consuming func with(_ settings: RunSettings) -> OperationContext {
    self.settings = settings
    return self
  }
}

/// The type of the request that a store was made for, with and without its modifiers.
struct RequestTypes: ~Copyable, Sendable {
  let plain: any Any.Type
  let modified: any Any.Type
  /// The name of the plain type, which is made once because that is slow, and the rules whose conflicts were
  /// reported.
  private let notes = Mutex<(name: String?, conflicts: Set<String>)>((nil, []))

  /// Notes that a rule of another request conflicts with that of the store. Returns whether it is the first one.
  func noteConflict(of rule: String) -> Bool {
    notes.withLock { $0.conflicts.insert(rule).inserted }
  }

  /// The name of a run's Swift task: that of the type, and for a paginated request what the run
  /// fetches, such as `FeedRequest, next page`.
  func taskName(in context: OperationContext) -> String {
    let name = notes.withLock { notes in
      if let name = notes.name { return name }
      let new = "\(plain)"
      notes.name = new
      return new
    }
    switch (context.input as? PageRunInput)?.kind {
    case nil, .refetch: return name
    case .initialPage: return name + ", initial page"
    case .nextPage: return name + ", next page"
    case .previousPage: return name + ", previous page"
    case .allPages: return name + ", all pages"
    }
  }
}
