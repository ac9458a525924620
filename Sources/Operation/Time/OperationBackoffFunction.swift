/// A function from the number of a retry to the wait before it.
///
/// ```swift
/// let backoff = OperationBackoffFunction.exponential(.seconds(1)).capped(at: .seconds(30)).jittered()
/// ```
///
/// The first retry has the number 0. No wait is longer than a hundred years. The duration that a
/// static function takes must not be negative: such a duration is reported as an `OperationIssue` and
/// taken as zero.
public struct OperationBackoffFunction: Sendable {
  private let duration: @Sendable (Int) -> Duration

  /// Creates a custom function.
  ///
  /// - Parameter duration: Returns the wait before a retry, whose number is never negative. A negative
  ///   result is taken as zero. It is called in the task of the run, with no lock held.
  public init(_ duration: @escaping @Sendable (Int) -> Duration) { self.duration = duration }

  /// Returns the wait before a retry.
  ///
  /// - Parameter retry: The number of the retry; a negative number is taken as 0.
  public func callAsFunction(_ retry: Int) -> Duration {
    min(max(duration(max(retry, 0)), .zero), .longest)
  }
}

extension OperationBackoffFunction {
  /// A function without a wait: retries begin at once.
  public static let noBackoff = OperationBackoffFunction { _ in .zero }

  /// Waits the same duration before each retry.
  ///
  /// - Parameter duration: The wait. A negative duration is reported, and zero is used.
  public static func constant(_ duration: Duration) -> Self { multiples(of: duration) { _ in 1 } }

  /// Waits 1, 2, 3 … times the duration.
  ///
  /// - Parameter base: The first wait. A negative duration is reported, and zero is used.
  public static func linear(_ base: Duration) -> Self { multiples(of: base) { Double($0) + 1 } }

  /// Waits 1, 2, 4 … times the duration.
  ///
  /// - Parameter base: The first wait. A negative duration is reported, and zero is used.
  public static func exponential(_ base: Duration) -> Self {
    multiples(of: base) { retry in (0..<min(retry, 1_000)).reduce(1) { product, _ in product * 2 } }
  }

  /// Waits 1, 1, 2, 3, 5 … times the duration.
  ///
  /// - Parameter base: The first wait. A negative duration is reported, and zero is used.
  public static func fibonacci(_ base: Duration) -> Self {
    multiples(of: base) { retry in
      (0..<min(retry, 1_000)).reduce((1.0, 1.0)) { pair, _ in (pair.1, pair.0 + pair.1) }.0
    }
  }

  /// Returns a function that waits a random part, between a half and the whole, of each wait.
  ///
  /// So clients that failed together do not retry together. This is the "equal jitter" of
  /// M. Brooker, [Exponential Backoff And
  /// Jitter](https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/), AWS
  /// Architecture Blog, 2015.
  ///
  /// - Parameter random: Called for each wait. Returns a number from 0 to 1, which selects the part.
  ///   A number outside of this range is taken as the nearer bound, and a NaN as 1. By default it is a
  ///   random number.
  public func jittered(
    using random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) -> Self {
    Self {
      let random = random()
      return self($0).scaled(by: random.isNaN ? 1 : 0.5 + min(max(random, 0), 1) / 2)
    }
  }

  /// Returns a function whose waits are no longer than `limit`.
  ///
  /// - Parameter limit: The longest wait; a negative limit is reported and taken as zero.
  public func capped(at limit: Duration) -> Self {
    let limit = limit.checked(for: "The cap of a backoff")
    return Self { min(self($0), limit) }
  }

  private static func multiples(
    of base: Duration, _ factor: @escaping @Sendable (Int) -> Double
  ) -> Self {
    let base = base.checked(for: "A backoff")
    return Self { base.scaled(by: factor($0)) }
  }
}
