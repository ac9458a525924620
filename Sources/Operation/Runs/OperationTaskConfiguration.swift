import FoundationEssentials

/// The name, the priority and the context of a task.
public struct OperationTaskConfiguration: Sendable {
  /// The name of the run's Swift task, which debuggers show.
  public var name: String?
  /// The priority of the run's Swift task; `nil` is the priority of the task that starts the run.
  public var priority: TaskPriority? {
    get { storedPriority.wrappedValue }
    set { storedPriority.wrappedValue = newValue }
  }
  // Without the attribute `@StoredPriority`, which would initialise it to `nil` first, at the cost of calls
  // of the runtime: the benchmark fetch would be further over its limit.
  private var storedPriority: StoredPriority
  /// The context of the run.
  public var context: OperationContext

  /// Creates a configuration.
  public init(
    name: String? = nil, priority: TaskPriority? = nil,
    context: OperationContext = OperationContext()
  ) {
    self.name = name
    storedPriority = StoredPriority(wrappedValue: priority)
    self.context = context
  }

  private init(_ name: String?, _ priority: StoredPriority, _ context: OperationContext) {
    self.name = name
    storedPriority = priority
    self.context = context
  }

  func with(_ context: OperationContext) -> OperationTaskConfiguration {
    OperationTaskConfiguration(name, storedPriority, context)
  }

  /// A configuration that many copies of a task share.
  package final class Box: Sendable {
    let configuration: OperationTaskConfiguration

    package init(_ configuration: OperationTaskConfiguration) { self.configuration = configuration }

    convenience init(_ context: OperationContext) {
      self.init(OperationTaskConfiguration(context: context))
    }

    /// The configuration without name, priority and context.
    static let empty = Box(OperationContext())

    /// The time of the context's clock.
    func now() -> Date { configuration.context.now() }
  }
}

extension OperationTaskConfiguration: CustomStringConvertible, CustomDebugStringConvertible {
  /// The name and the priority, if they are set, and the context.
  public var description: String {
    describe(
      as: "OperationTaskConfiguration",
      [
        name.map { "name: \(describe($0))" }, priority.map { "priority: \($0.rawValue)" },
        "context: \(context)",
      ])
  }
  /// The same as ``description``.
  public var debugDescription: String { description }
}
