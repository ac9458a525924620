/// How a task runs: its name, its priority, and the context that it runs in.
public struct OperationTaskConfiguration: Sendable {
  /// The name of the Swift task of the run, which debuggers show.
  public var name: String?
  /// The priority of the Swift task of the run; that of the caller if `nil`.
  public var priority: TaskPriority?
  /// The context of the run.
  public var context: OperationContext

  /// Creates a configuration.
  public init(
    name: String? = nil, priority: TaskPriority? = nil,
    context: OperationContext = OperationContext()
  ) {
    self.name = name
    self.priority = priority
    self.context = context
  }
}
