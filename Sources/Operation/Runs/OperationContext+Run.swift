/// Which cached values a run may take from the query that its request reads, in place of a fetch.
enum CacheUse: Sendable {
  case none, usable
  /// Also those that are out of date: the run follows a new value, so it must not fetch the next one.
  case ofAnyAge
}

/// What a context contains about its run.
final class RunFacts: ContextRun {
  struct Values: Sendable {
    /// The task of the run; `nil` in a context that was prepared outside of a run.
    var node: TaskNode?
    var attempt: OperationContext.Attempt?
    /// The number of restarts before the request was called.
    var launch = 0
    /// What the run is for, beyond the request: the arguments of a mutation, a kind of page run.
    var input: (any RunInput)?
    /// The saved call that the run makes; `nil` for any other run.
    var call: RunCall?
    /// What the attempts of the run share, of a type that only its kind of request knows.
    var work: (any AnyObject & Sendable)?
    /// The rules that the run has been started with; `nil` if they are those of its store.
    var rules: (any RunRules)?
    var cacheUse = CacheUse.none
    /// Whether `deduplicated()` has no effect on this run, which has no store: an outer one deduplicates it, or
    /// it reads for the run of a store, which would not depend on what another run reads.
    var sharesNoRun = false
  }

  let values: Values

  init(_ values: Values) { self.values = values }
}

extension OperationContext {
  private var facts: RunFacts? { run as? RunFacts }

  /// Changes the facts of this context only: copies keep theirs.
  mutating func changeFacts(_ change: (inout RunFacts.Values) -> Void) {
    var values = facts?.values ?? RunFacts.Values(node: run as? TaskNode)
    change(&values)
    run = RunFacts(values)
  }

  /// The task of the run that this context belongs to.
  var runNode: TaskNode? { run as? TaskNode ?? facts?.values.node }

  /// The rules that the run has been started with; `nil` if they are those of its store, and in the
  /// context of the request, because they retain the request, which may store its context.
  var rules: (any RunRules)? { facts?.values.rules }

  /// The launch of the run that the request works for.
  var launch: Int { facts?.values.launch ?? 0 }

  var cacheUse: CacheUse { facts?.values.cacheUse ?? .none }

  var sharesNoRun: Bool { facts?.values.sharesNoRun ?? false }

  var input: (any RunInput)? { facts?.values.input }
  var call: RunCall? { facts?.values.call }
  var work: (any AnyObject & Sendable)? { facts?.values.work }

  /// Returns the context of a run that begins now, over `base`. Nothing of another run is left in it.
  func beginning(
    _ node: TaskNode, input: (any RunInput)?, rules: (any RunRules)? = nil,
    cacheUse: CacheUse = .none, over base: consuming OperationContext
  ) -> OperationContext {
    var context = over(base)
    // Most runs have only a task.
    context.run = node
    if input != nil || rules != nil || cacheUse != .none {
      context.run = RunFacts(
        RunFacts.Values(node: node, input: input, rules: rules, cacheUse: cacheUse))
    }
    return context
  }

  /// Returns a Boolean value that indicates whether both contexts are equal for a request.
  ///
  /// Values that cannot be compared differ, unless they were written at once or are one object.
  func isEquivalent(to other: OperationContext) -> Bool {
    hasEquivalentInput(to: other) && hasEquivalentValues(to: other)
  }

  private func hasEquivalentInput(to other: OperationContext) -> Bool {
    guard let input, let otherInput = other.input else { return input == nil && other.input == nil }
    return input === otherInput || areEqual(input.value, otherInput.value)
  }

  /// One attempt of a retried run.
  struct Attempt: Sendable {
    var index = 0
    var retryLimit = 0
    /// Whether an outer retry repeats what fails.
    var isRetried = false
  }

  /// The attempt that the context belongs to; the first one unless a retry wrote another.
  var attempt: Attempt {
    get {
      if let attempt = facts?.values.attempt { return attempt }
      if runNode == nil { return Attempt() }
      return Attempt(retryLimit: settings.values.retry.limit, isRetried: settings.isRetriedByStore)
    }
    set { changeFacts { $0.attempt = newValue } }
  }

  /// The number of attempts of this run that have failed before this one: 0 in the first attempt.
  public var operationRetryIndex: Int { attempt.index }

  /// The number of retries that the run makes at most. It makes one attempt more than that.
  public var operationMaxRetries: Int { attempt.retryLimit }

  /// A Boolean value that indicates whether a failure of this attempt is final.
  public var isLastRetryAttempt: Bool { attempt.index >= attempt.retryLimit }

  /// The kind of page run; a plain run fetches again what the request's rule names.
  var pageRunKind: PaginatedRunKind {
    get { (input as? PageRunInput)?.kind ?? .refetch }
    set { changeFacts { $0.input = PageRunInput(newValue) } }
  }
}

/// What a run is for, of a type that only its kind of request knows.
package protocol RunInput: AnyObject, Sendable {
  /// The part that is equal in two runs that are the same.
  var value: any Sendable { get }
  /// The call in the outbox that the run makes again; `nil` for any other run.
  var savedCall: (any Sendable)? { get }
}

/// The arguments of a mutation.
package final class RunArguments<Arguments: Sendable>: RunInput {
  let arguments: Arguments
  /// The call in the outbox that the run makes again.
  package let savedCall: (any Sendable)?

  package init(_ arguments: Arguments, savedCall: (any Sendable)? = nil) {
    self.arguments = arguments
    self.savedCall = savedCall
  }

  package var value: any Sendable { arguments }
}

/// A kind of page run.
final class PageRunInput: RunInput {
  let kind: PaginatedRunKind

  init(_ kind: PaginatedRunKind) { self.kind = kind }

  var value: any Sendable { kind }
  var savedCall: (any Sendable)? { nil }
}
