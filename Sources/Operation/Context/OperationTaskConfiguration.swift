import FoundationEssentials

/// The name, the priority and the context of a task.
public struct OperationTaskConfiguration: Sendable {
  /// The name of the run's Swift task, which debuggers show.
  public var name: String?
  /// The priority as a number, because the size of `TaskPriority` is not known at compile time, and so would
  /// not be that of everything that contains one.
  private var rawPriority: UInt8?
  /// The context of the run.
  public var context: OperationContext

  func with(_ context: consuming OperationContext) -> OperationTaskConfiguration {
    OperationTaskConfiguration(name: name, rawPriority: rawPriority, context: context)
  }

  /// A configuration that many copies of a task share.
  package final class Box: Sendable {
    let configuration: OperationTaskConfiguration
    /// The number that a result of the task had when it was displayed (see ``CallOverlap``), if a store adds
    /// that result again, to a state that was restored. Otherwise `nil`.
    let display: Int?

    package init(_ configuration: OperationTaskConfiguration, display: Int? = nil) {
      (self.configuration, self.display) = (configuration, display)
    }

    convenience init(_ context: OperationContext) {
      // `priority` selects the public initialiser, as the memberwise one has `rawPriority`.
      self.init(OperationTaskConfiguration(priority: nil, context: context))
    }

    /// The configuration without name, priority and context.
    static let empty = Box(OperationContext())

    /// The time of the context's clock.
    func now() -> Date { configuration.context.now() }
  }
}

extension OperationTaskConfiguration {
  /// Creates a configuration.
  public init(
    name: String? = nil, priority: TaskPriority? = nil,
    context: OperationContext = OperationContext()
  ) { self.init(name: name, rawPriority: priority?.rawValue, context: context) }

  /// The priority of the run's Swift task; `nil` is the priority of the task that starts the run.
  public var priority: TaskPriority? {
    get { rawPriority.map(TaskPriority.init) }
    set { rawPriority = newValue?.rawValue }
  }
}

extension OperationTaskConfiguration: CustomStringConvertible, CustomDebugStringConvertible {
  /// The name and the priority, if they are set, and the context.
  public var description: String {
    describe(
      as: "OperationTaskConfiguration", name.map { "name: \(describe($0))" },
      priority.map { "priority: \($0.rawValue)" }, "context: \(context)")
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}
