@testable import Operation

extension OperationClient {
  /// Returns a Boolean value that indicates whether the client itself retains a store on a path.
  func retains(_ path: OperationPath) -> Bool {
    read { $0.entries[path]?.references.contains { $0.isRetained } == true }
  }
}

extension StoreIndex {
  /// Returns a Boolean value that indicates whether the index retains a store.
  func isRetained(_ store: OpaqueOperationStore) -> Bool {
    reference(store.id, at: store.path)?.isRetained == true
  }
}
