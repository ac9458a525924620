import Operation
import Testing

@Suite("OperationBackoffFunction") struct OperationBackoffFunctionTests {
  private func waits(_ function: OperationBackoffFunction, _ count: Int = 7) -> [Duration] {
    (0..<count).map { function($0) }
  }

  @Test("Each kind of backoff has its sequence of waits")
  func sequences() {
    func seconds(_ counts: Int...) -> [Duration] { counts.map { .seconds($0) } }
    #expect(waits(.noBackoff) == seconds(0, 0, 0, 0, 0, 0, 0))
    #expect(waits(.constant(.seconds(3))) == seconds(3, 3, 3, 3, 3, 3, 3))
    #expect(waits(.linear(.seconds(1))) == seconds(1, 2, 3, 4, 5, 6, 7))
    #expect(waits(.exponential(.seconds(1))) == seconds(1, 2, 4, 8, 16, 32, 64))
    #expect(waits(.fibonacci(.seconds(1))) == seconds(1, 1, 2, 3, 5, 8, 13))
  }

  @Test(
    "Multiples of a duration are exact, so that a clock that is advanced by them ends the wait",
    arguments: [1, 10, 30, 100, 300, 700])
  func exactMultiples(milliseconds: Int) {
    let base = Duration.milliseconds(milliseconds)
    #expect(waits(.linear(base), 50) == (1...50).map { base * $0 })
    #expect(waits(.exponential(base), 12) == (0..<12).map { base * (1 << $0) })
    #expect(waits(.fibonacci(base)) == [1, 1, 2, 3, 5, 8, 13].map { base * $0 })
  }

  @Test("A cap ends the growth")
  func cap() {
    let capped = OperationBackoffFunction.exponential(.seconds(1)).capped(at: .seconds(30))
    #expect(waits(capped) == [1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
    #expect(capped(1_000_000) == .seconds(30))
  }

  @Test(
    "Jitter waits between a half and the whole of each wait",
    arguments: [(0.0, 500), (0.5, 750), (0.999, 999), (-3, 500), (8, 1_000)])
  func jitter(random: Double, milliseconds: Int) {
    let jittered = OperationBackoffFunction.constant(.seconds(1)).jittered { random }
    let difference = jittered(0) - .milliseconds(milliseconds)
    #expect(difference < .milliseconds(1) && difference > .milliseconds(-1))
  }

  @Test("Random jitter is within its bounds, and not constant")
  func randomJitter() {
    let jittered = OperationBackoffFunction.exponential(.seconds(1)).jittered()
    for retry in 0..<6 {
      let whole = Duration.seconds(1 << retry)
      let waits = (0..<200).map { _ in jittered(retry) }
      #expect(waits.allSatisfy { $0 >= whole / 2 && $0 <= whole })
      #expect(Set(waits).count > 100)
    }
    #expect(OperationBackoffFunction.noBackoff.jittered()(3) == .zero)
  }

  @Test("A cap after a jitter limits the wait, and a jitter after a cap reduces it")
  func order() {
    let base = OperationBackoffFunction.constant(.seconds(60))
    #expect(base.jittered { 0 }.capped(at: .seconds(20))(0) == .seconds(20))
    #expect(base.capped(at: .seconds(20)).jittered { 0 }(0) == .seconds(10))
  }

  @Test("Huge retry numbers and durations do not overflow")
  func noOverflow() {
    let century = Duration.seconds(100 * 365 * 86_400)
    let huge = Duration(secondsComponent: .max, attosecondsComponent: 0)
    for retry in [64, 1_000, 100_000, .max] {
      #expect(OperationBackoffFunction.exponential(.seconds(1))(retry) == century)
      #expect(OperationBackoffFunction.fibonacci(.seconds(1))(max(retry, 100)) == century)
      #expect(OperationBackoffFunction.linear(huge)(retry) == century)
      #expect(OperationBackoffFunction.exponential(.zero)(retry) == .zero)
      #expect(OperationBackoffFunction.exponential(huge).jittered { 1 }(retry) == century)
    }
    #expect(OperationBackoffFunction.linear(.seconds(1))(.max) == century)
    #expect(OperationBackoffFunction { _ in huge }(0) == century)
    #expect(OperationBackoffFunction.linear(.nanoseconds(1))(.max) == century)
  }

  @Test("A negative retry number is the first retry, and a negative custom wait is zero")
  func negativeInput() {
    #expect(OperationBackoffFunction.exponential(.seconds(1))(-5) == .seconds(1))
    #expect(OperationBackoffFunction.linear(.seconds(1))(.min) == .seconds(1))
    #expect(OperationBackoffFunction { .seconds(-1 - $0) }(3) == .zero)
  }

  @Test("A negative duration is reported, and zero is used")
  func negativeDurations() async {
    let reported = await issues {
      [
        OperationBackoffFunction.constant(.seconds(-1)), .linear(.seconds(-1)),
        .exponential(.seconds(-1)), .fibonacci(.seconds(-1)),
        .constant(.seconds(1)).capped(at: .seconds(-1)),
      ].map { $0(3) }
    }
    #expect(reported.output == Array(repeating: .zero, count: 5))
    #expect(reported.issues.count == 5)
    #expect(reported.issues.allSatisfy { $0.kind == .invalidValue })
    #expect(reported.issues[0].message.contains("-1.0 seconds"))
  }
}
