extension OperationStore: TaskDriver {
  func enter(
    _ task: TaskNode, configuration: OperationTaskConfiguration, onlyToStart: Bool
  ) -> Bool {
    let core = Machine.Core(task)
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

  func leave(_ id: OperationTaskID) {
    let (core, mustFollow) = commit { $0.leave(id) }
    if mustFollow { follow() }
    core?.cancelRun()
  }
}
