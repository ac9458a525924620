extension OperationStore: TaskDriver {
  @usableFromInline func enter(
    _ core: any TaskHandle, configuration: OperationTaskConfiguration, onlyToStart: Bool
  ) -> Bool {
    entrance(self, core, configuration, onlyToStart)
  }

  @inlinable func begin(
    _ core: any TaskHandle, configuration: OperationTaskConfiguration, onlyToStart: Bool
  ) -> Bool {
    guard let core = core as? Machine.Core else { return false }
    switch commit({ $0.enter(core, configuration, onlyToStart: onlyToStart) }) {
    case .launch(let box): start(Place(core, box))
    case .joined: break
    case .underWay: return false
    case .gone:
      // A cancelled run whose failure cannot say so has to run to have a result at all; of any
      // other run this changes nothing.
      start(Place(core, .init(configuration)))
    }
    return true
  }

  @inlinable func leave(_ id: OperationTaskID) {
    let (core, mustFollow) = commit { $0.leave(id) }
    core?.cancelRun()
    if mustFollow { runForObservers(cause: .invalidation) }
  }
}
