import FoundationEssentials

/// How a task runs: its name, its priority, and the context that it runs in.
public struct OperationTaskConfiguration: Sendable {
  /// The name of the Swift task of the run, which debuggers show.
  public var name: String?
  /// The priority of the Swift task of the run; that of the caller if `nil`.
  public var priority: TaskPriority? {
    get { rawPriority.map(TaskPriority.init) }
    set { rawPriority = newValue?.rawValue }
  }
  /// The priority as a number: the standard library keeps the size of `TaskPriority` open, and so
  /// would be that of everything that holds one.
  var rawPriority: UInt8?
  /// The context of the run.
  public var context: OperationContext

  /// Creates a configuration.
  public init(
    name: String? = nil, priority: TaskPriority? = nil,
    context: OperationContext = OperationContext()
  ) {
    self.name = name
    rawPriority = priority?.rawValue
    self.context = context
  }

  /// A configuration that says nothing beside the context, without a look at the size of a priority.
  init(only context: OperationContext) {
    name = nil
    rawPriority = nil
    self.context = context
  }

  /// The same with another context, which is not made by a change: the old one would be copied for it.
  func with(_ context: consuming OperationContext) -> OperationTaskConfiguration {
    var new = OperationTaskConfiguration(only: context)
    (new.name, new.rawPriority) = (name, rawPriority)
    return new
  }

  /// One configuration for many copies of a task.
  final class Box: Sendable {
    let configuration: OperationTaskConfiguration

    init(_ configuration: OperationTaskConfiguration) {
      self.configuration = configuration
    }

    convenience init(_ context: OperationContext) {
      self.init(OperationTaskConfiguration(only: context))
    }

    /// What the clock of the context shows; a context that is taken out for it is counted.
    func now() -> Date { configuration.context.now() }

    func isEquivalent(to context: OperationContext) -> Bool {
      configuration.context.isEquivalent(to: context)
    }

    /// The one that says nothing.
    static let empty = Box(OperationContext())

    /// The configuration of a run that begins now, in a context that lies over `base`.
    func beginning(
      _ node: TaskNode, input: (any RunInput)?, over base: OperationContext
    ) -> Box {
      Box(configuration.with(configuration.context.beginning(node, input: input, over: base)))
    }
  }
}
