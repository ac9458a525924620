/// A command to the inspected program.
enum InspectorCommand: Equatable, Sendable {
  case watch(store: Int)
  case unwatch
  case perform(Operation, store: Int)
  case offline(Bool)

  /// What the inspector does with a store.
  enum Operation: String, CaseIterable, Sendable {
    case refetch, invalidate, reset, cancel, clear
  }

  /// Returns the command as a line of the protocol, without the newline.
  func line(id: Int) -> String {
    switch self {
    case .watch(let store): #"{"id":\#(id),"command":"watch","store":\#(store)}"#
    case .unwatch: #"{"id":\#(id),"command":"unwatch"}"#
    case .perform(let operation, let store):
      #"{"id":\#(id),"command":"\#(operation.rawValue)","store":\#(store)}"#
    case .offline(let value): #"{"id":\#(id),"command":"offline","value":\#(value)}"#
    }
  }

  /// Returns the command in words; `nil` for one whose reply is not shown.
  func text(in model: InspectorModel) -> String? {
    switch self {
    case .watch, .unwatch: nil
    case .perform(let operation, let store):
      "\(operation.rawValue) \(model.stores[store]?.name ?? "a store")"
    case .offline(true): "go offline"
    case .offline(false): "go online"
    }
  }
}
