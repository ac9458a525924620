import Testing

@testable import Operation

/// Comparisons of values whose type is known to be `Equatable` at run time only.
@Suite struct EqualityTests {
  private struct Isolated: @MainActor Equatable, Sendable {
    let number: Int
  }

  @Test("Values are equal on the actor that their conformance is isolated to, and not elsewhere")
  @MainActor func isolated() async throws {
    let areEqual = try #require(Equality<Isolated?>.comparison)
    let value = Isolated(number: 1)
    #expect(areEqual(value, value) && !areEqual(value, Isolated(number: 2)))
    #expect(await Task.detached { !areEqual(value, value) }.value)
  }

  @Test("Only values of types that are Equatable can be compared")
  func conformance() throws {
    let areEqual = try #require(Equality<Int?>.comparison)
    #expect(areEqual(1, 1) && areEqual(nil, nil) && !areEqual(1, nil) && !areEqual(1, 2))
    #expect(Equality<@Sendable () -> Void>.comparison == nil)
  }

  @Test("Values of two types are different, also if both are missing") func types() {
    #expect(areSame(Int?.none, Int?.none) && !areSame(Int?.none, String?.none))
    #expect(!areSame(ManualClock(), SystemClock()) && areDifferent(1, "1"))
  }
}
