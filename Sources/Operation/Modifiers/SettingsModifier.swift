/// A modifier that changes the settings of a request's runs, and not the runs themselves.
///
/// A setting of the request replaces the default of the client. If a request has several modifiers
/// for one setting, the last one counts.
public struct SettingsModifier<Base: OperationRequest>: OperationModifier, Equatable {
  let name: String
  let parameters: [any Sendable]
  let change: @Sendable (inout OperationContext) -> Void

  /// Returns a Boolean value that indicates whether both are one modifier, and no parameters are known to
  /// differ. Closures cannot be compared, nor can values that are not `Equatable`.
  public static func == (lhs: Self, rhs: Self) -> Bool {
    lhs.name == rhs.name && !zip(lhs.parameters, rhs.parameters).contains(where: areDifferent)
  }

  /// Writes the settings into the context.
  public func setup(context: inout OperationContext, using base: Base) { change(&context) }
}

extension OperationRequest {
  /// A request of this type below a modifier that changes a setting only, such as ``neverStale()``.
  public typealias Configured = ModifiedOperation<Self, SettingsModifier<Self>>

  /// - Parameter parameters: What distinguishes the modifier from another one of the same name.
  func settings(
    _ parameters: any Sendable..., name: String = #function,
    _ change: @escaping @Sendable (inout RunSettings.Values) -> Void
  ) -> Configured {
    modifier(
      SettingsModifier(name: name, parameters: parameters) { change(&$0.settings.values) })
  }

  /// Sets the time to wait before each retry.
  public func backoff(
    _ function: OperationBackoffFunction
  ) -> Configured { settings { $0.retry.backoff = function } }

  /// Sets the clock that the dates and the waits of the request come from.
  public func clock(_ clock: any OperationClock) -> Configured {
    modifier(SettingsModifier(name: "clock", parameters: [clock]) { $0.operationClock = clock })
  }

  /// Sets whether runs wait for a connection.
  ///
  /// A run that waits has the status `paused`, and continues when there is a connection again. Like
  /// any run it is cancelled when its last lease is released. Paused calls of a serialized mutation
  /// continue in the order in which they were made.
  public func networkMode(_ mode: NetworkMode) -> Configured {
    settings(mode) { $0.networkMode = mode }
  }

  /// Runs the request after all earlier runs with the same scope have ended.
  ///
  /// A scope spans the stores of a client; a store without a client has scopes of its own. Runs
  /// with different scopes run side by side. A run that fails or is cancelled does not stop the
  /// next one. A run that awaits another one of its own scope would wait for itself: it gets an
  /// ``OperationDependencyError``. The same error ends a deadlock across two scopes.
  ///
  /// - Parameter scope: Any hashable value. Scopes are the same when their types and values are. A
  ///   scope that is not equal to itself is reported, and counts as the same as all such scopes of
  ///   its type.
  public func serialized(in scope: some Hashable & Sendable) -> Configured {
    limited(to: 1, in: scope)
  }

  /// Runs the request while fewer than `limit` runs with the same scope are in flight. Others wait, and
  /// begin in the order in which they were requested.
  ///
  /// Scopes are those of `serialized(in:)`, which is a limit of one. If requests of one scope have
  /// different limits, the lowest one applies as long as a run with that limit waits or is in flight. A run
  /// that awaits another one of its own scope occupies a place meanwhile: if all do, they wait until one is
  /// cancelled.
  ///
  /// - Parameters:
  ///   - limit: The number of runs. A number below one is reported, and one is used.
  ///   - scope: Any hashable value.
  public func limited(to limit: Int, in scope: some Hashable & Sendable) -> Configured {
    let limit = limit.checkedLimit(for: "The number of runs of \(plainType)")
    let scope = SerialScope(scope, limit: limit, of: Self.self)
    return settings { $0.serialScope = scope }
  }

  /// Sets the name and the priority of the Swift tasks of runs that no caller requested: those for a
  /// subscriber, after an invalidation, by a condition, and by a poll.
  ///
  /// - Parameters:
  ///   - name: The name; `nil`, the default, is that of any run.
  ///   - priority: The priority; `nil` is that of the task that starts the run.
  public func automaticRuns(
    named name: String? = nil, priority: TaskPriority? = nil
  ) -> Configured {
    let task = OperationTaskConfiguration(name: name, priority: priority)
    return settings(name, priority) { $0.automatic.task = .init(task) }
  }

  /// Lets `fetch` and `ensure` return the value of the store when a run fails, if the value is younger
  /// than `duration`. The failure is in the state.
  ///
  /// A dependency cycle and a cancellation are thrown. The value is the one without pending optimistic
  /// edits. This applies to queries whose state is a ``QueryState``.
  ///
  /// - Parameter duration: The age. A negative duration is reported, and zero is used.
  public func staleIfError(for duration: Duration) -> Configured {
    let duration = duration.checked(for: "The age of a value in place of an error of \(plainType)")
    return settings(duration) { $0.staleIfError = duration }
  }

  /// Makes the value stale from the age `duration` on, by the clock of the context.
  ///
  /// A store is also stale without a value, after an invalidation, and if the date of its value is
  /// in the future because the clock was set back. Of several staleness modifiers the last one
  /// counts.
  ///
  /// - Parameter duration: The age. A negative duration is reported, and zero is used.
  public func stale(after duration: Duration) -> Configured {
    let duration = duration.checked(for: "The stale time of \(plainType)")
    return settings(duration) { $0.staleness = .after(duration) }
  }

  /// Keeps a value fresh until it is invalidated.
  public func neverStale() -> Configured { settings { $0.staleness = .never } }
}

extension StatefulOperationRequest {
  /// Makes the value stale when a predicate returns `true`.
  ///
  /// - Parameter isStale: Called with the state and the context of the store, on any thread, with
  ///   no lock held.
  public func staleWhen(
    _ isStale: @escaping @Sendable (State, OperationContext) -> Bool
  ) -> Configured {
    settings {
      $0.staleness = .when { state, context in (state as? State).map { isStale($0, context) } }
    }
  }
}

extension MutationRequest {
  /// Limits the history of the mutation. The default is 100 attempts.
  ///
  /// - Parameter length: The number of attempts. A negative number is reported, and zero is used.
  public func maxHistory(length: Int) -> Configured {
    let length = length.checkedCount(for: "The history length of \(requestType)")
    return settings(length) { $0.maxHistory = length }
  }
}

extension PaginatedRequest {
  /// Limits the pages of the state: a next page removes the first ones, and a previous page removes
  /// the last ones. By default there is no limit.
  ///
  /// - Parameter limit: The number of pages. A number below one is reported, and one is used.
  public func maxPages(_ limit: Int) -> Configured {
    let limit = limit.checkedLimit(for: "The number of pages of \(requestType)")
    return settings(limit) { $0.pages.limit = limit }
  }

  /// Sets the pages that a plain `fetch`, and a run that starts automatically, fetch again. The
  /// default is all pages.
  public func refetching(
    _ pages: PaginatedRefetch<PageID, PageValue>
  ) -> Configured { settings { $0.pages.refetch = pages } }

  /// Calls `handler` before and after each fetch of a page: for each page of a run of several, and for
  /// each attempt.
  ///
  /// The handler is called on any thread, with no lock held, before the page is in the state. Several
  /// handlers are called in the order of the modifiers. ``OperationClient/events`` has these events for
  /// all stores of a client, with the pages as text.
  public func handlePages(
    _ handler: @escaping @Sendable (PaginatedPageEvent<PageID, PageValue>) -> Void
  ) -> Configured { settings { $0.pages.handlers.append(PageHandler(handle: handler)) } }
}

/// A modifier that sets how long a client retains the store of a request.
public struct RetentionModifier<Base: OperationRequest>: OperationModifier {
  /// The time that the store is retained while it is unused.
  public let retention: OperationRetention?
}

extension StatefulOperationRequest {
  /// Sets how long a client retains the store of this request while it is unused.
  ///
  /// It replaces the rule of the client. If several requests share the store, the longest retention
  /// counts; that of a request without this modifier is the client's.
  public func retained(
    _ retention: OperationRetention
  ) -> ModifiedOperation<Self, RetentionModifier<Self>> {
    modifier(RetentionModifier(retention: retention))
  }
}
