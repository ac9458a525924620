import FoundationEssentials
import Testing

/// The random schedules of the model tests.
///
/// `swift test` runs two thousand of each. The long form, and one schedule alone:
///
/// ```
/// OPERATION_MODEL_SCHEDULES=100000 swift test --filter 'OperationTests.*ModelTests'
/// OPERATION_MODEL_SEED=17 swift test --filter 'OperationTests.*ModelTests'
/// ```
enum Schedules {
  static let seeds: Range<UInt64> = {
    if let seed = number("OPERATION_MODEL_SEED") { return seed..<seed + 1 }
    return 0..<(number("OPERATION_MODEL_SCHEDULES") ?? 2_000)
  }()

  private static func number(_ name: String) -> UInt64? {
    ProcessInfo.processInfo.environment[name].flatMap(UInt64.init)
  }

  /// Runs one schedule after the other, until one differs from its model. Prints their count, and
  /// the seed of one that failed.
  static func each(
    _ name: String, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (UInt64) async throws -> Void
  ) async {
    let clock = ContinuousClock()
    let start = clock.now
    for seed in seeds {
      do {
        try await body(seed)
      } catch {
        Issue.record(
          "\(name), with OPERATION_MODEL_SEED=\(seed): \(error)", sourceLocation: sourceLocation)
        return
      }
    }
    let seconds = Double((clock.now - start) / .milliseconds(1)).rounded() / 1_000
    print("\(name): \(seeds.count) schedules in \(seconds) s")
  }
}

extension Array {
  /// The steps of a schedule, for the message of a failure.
  var listed: String {
    let types = /OperationTests\.(?:[A-Z]\w*\.|\(unknown context at \$\w+\)\.)*/
    return map { "\($0)".replacing(types, with: "") }.joined(separator: ", ")
  }
}
