/// Whether the runs of a request wait for a connection.
public enum NetworkMode: String, Sendable, Hashable, Codable {
  /// Runs do not care: the request talks to this machine, or finds out by itself.
  case always
  /// A run that starts, or tries again, without a connection is paused until there is one.
  case online
  /// A run starts at once, and is paused when it tries again without a connection.
  case offlineFirst
}

/// Who is told by a run that is under way.
final class RunHooks: Sendable {
  let setPaused: @Sendable (Bool) -> Void
  let attemptBegan: @Sendable (Int) -> Void

  init(
    setPaused: @escaping @Sendable (Bool) -> Void,
    attemptBegan: @escaping @Sendable (Int) -> Void
  ) {
    self.setPaused = setPaused
    self.attemptBegan = attemptBegan
  }
}

extension OperationContext {
  /// Waits for a connection before an attempt, if the request wants that; tells whether the run may
  /// go on, which it may not when it was cancelled.
  nonisolated(nonsending) func mayAttempt(isRetry: Bool) async -> Bool {
    switch settings.values.networkMode {
    case .always: return true
    case .offlineFirst where !isRetry: return true
    case .online, .offlineFirst: break
    }
    let network = networkObserver
    if network.currentStatus == .connected { return true }
    hooks?.setPaused(true)
    defer { hooks?.setPaused(false) }
    return await wait {
      network.currentStatus == .connected
    } changes: { onChange in
      network.subscribe { _ in onChange() }
    }
  }
}
