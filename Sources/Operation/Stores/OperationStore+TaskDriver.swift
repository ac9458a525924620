extension OperationStore: TaskDriver {
  @inlinable func enter(
    _ core: TaskCore<State.OperationValue, State.Failure>,
    configuration: OperationTaskConfiguration
  ) {
    switch commit({ $0.enter(core, configuration) }) {
    case .launch(let task): launch(Place(task, core))
    case .joined: break
    case .gone:
      // A cancelled run whose failure cannot say so has to run to have a result at all; of any
      // other run this changes nothing.
      launch(Place(OperationTask(handle: core, configuration: configuration), core))
    }
  }

  @inlinable func leave(_ id: OperationTaskID) {
    let (core, mustFollow) = commit { $0.leave(id) }
    core?.cancelRun()
    if mustFollow { runForObservers(cause: .invalidation) }
  }
}
