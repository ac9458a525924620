import FoundationEssentials

/// How long to wait before each retry: a hundred years at most.
///
/// A negative duration, where one is given, is reported and taken as zero.
///
/// ```swift
/// let backoff = OperationBackoffFunction.exponential(.seconds(1)).jittered().capped(at: .seconds(30))
/// ```
public struct OperationBackoffFunction: Sendable {
  private let duration: @Sendable (Int) -> Duration

  /// Creates a function of one's own.
  ///
  /// - Parameter duration: Gives the wait before a retry; 0 stands for the first retry. A negative
  ///   wait is taken as none.
  public init(_ duration: @escaping @Sendable (Int) -> Duration) {
    self.duration = duration
  }

  /// The wait before a retry; 0, and any negative number, stands for the first one.
  public func callAsFunction(_ retry: Int) -> Duration {
    min(max(duration(max(retry, 0)), .zero), .longest)
  }
}

extension OperationBackoffFunction {
  /// Retries at once.
  public static let noBackoff = OperationBackoffFunction { _ in .zero }

  /// Waits the same time before each retry.
  public static func constant(_ duration: Duration) -> Self {
    let duration = duration.checked(for: "A backoff")
    return Self { _ in duration }
  }

  /// Waits one, two, three … times the duration.
  public static func linear(_ base: Duration) -> Self {
    let base = base.checked(for: "A backoff")
    return Self { base.scaled(by: Double($0) + 1) }
  }

  /// Waits one, two, four … times the duration.
  public static func exponential(_ base: Duration) -> Self {
    let base = base.checked(for: "A backoff")
    return Self { base.scaled(by: power(of: 2, $0)) }
  }

  /// Waits one, one, two, three, five … times the duration.
  public static func fibonacci(_ base: Duration) -> Self {
    let base = base.checked(for: "A backoff")
    return Self { base.scaled(by: fibonacciNumber($0)) }
  }

  /// Takes a random share, between a half and the whole, of each wait, so that clients that failed
  /// together do not come back together.
  ///
  /// This is "equal jitter" of M. Brooker, *Exponential Backoff And Jitter*, AWS Architecture Blog,
  /// 2015.
  ///
  /// - Parameter random: Gives a number from 0 up to 1. What is beyond is taken as the nearer of
  ///   both, and what is no number as 1.
  public func jittered(
    using random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
  ) -> Self {
    Self {
      let random = random()
      return self($0).scaled(by: random.isNaN ? 1 : 0.5 + min(max(random, 0), 1) / 2)
    }
  }

  /// Waits no longer than `limit`.
  public func capped(at limit: Duration) -> Self {
    let limit = limit.checked(for: "The cap of a backoff")
    return Self { min(self($0), limit) }
  }

  private static func power(of base: Double, _ exponent: Int) -> Double {
    (0..<min(exponent, 1_000)).reduce(1) { product, _ in product * base }
  }

  private static func fibonacciNumber(_ index: Int) -> Double {
    (0..<min(index, 1_000)).reduce((1.0, 1.0)) { pair, _ in (pair.1, pair.0 + pair.1) }.0
  }
}
