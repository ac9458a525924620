@testable import Operation

extension SerialScope {
  /// Creates the scope of no request.
  init(_ scope: some Hashable & Sendable, limit: Int = 1) {
    self.init(scope, limit: limit, of: Never.self)
  }
}
