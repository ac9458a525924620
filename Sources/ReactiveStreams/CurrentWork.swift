/// What the current task works for: a run of the module `Operation`, whose request waits for the task.
///
/// Child tasks and unstructured tasks inherit it. The tasks that a handler starts do not: no request waits for
/// them, although a request may have called the handler.
package enum CurrentWork {
  @TaskLocal package static var value: (any AnyObject & Sendable)?

  /// Calls a closure. The tasks that it starts work for no run.
  package static func without<Output>(_ body: () -> Output) -> Output {
    value == nil ? body() : $value.withValue(nil) { body() }
  }
}
