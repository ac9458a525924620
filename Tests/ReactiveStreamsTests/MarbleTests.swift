import Testing

@testable import ReactiveStreams

/// The operators, drawn: a character is a second, see `marbles(_:through:)`.
@Suite("Operators, diagrams")
struct MarbleTests {
  @Test("filter drops the elements that its closure excludes, and no others")
  func filter() {
    #expect(
      marbles("a-Bc-D|") { sources, _ in
        sources[0].filter { $0 == $0.lowercased() }
      } == "a--c--|")
  }

  @Test("scan sends each result, and not the initial one")
  func scan() {
    #expect(
      marbles("a-bc-|") { sources, _ in sources[0].scan("_", +) } == "(_a)-(_ab)(_abc)-|")
    #expect(marbles("--|") { sources, _ in sources[0].scan("_", +) } == "--|")
  }

  @Test(
    "merge sends the elements of both, and ends with the second end",
    arguments: [
      ("a-b-|", "-c-d--e|", "acbd--e|"),
      ("a-b|", "c-d|", "(ac)-(bd)|"),
      ("|", "-a|", "-a|"),
      ("-a|", "|", "-a|"),
      ("|", "|", "|"),
      ("a--", "|", "a--"),
    ])
  func merge(first: String, second: String, result: String) {
    #expect(marbles(first, second) { sources, _ in sources[0].merge(sources[1]) } == result)
  }

  @Test(
    "combineLatest of an array sends the newest of all, once all have an element",
    arguments: [
      ("a--b---|", "-c--d--|", "--e--f-|", "--(ace)(bce)(bde)(bdf)-|"),
      ("a-|", "-bb|", "c---d|", "-(abc)(abc)-(abd)|"),
      // One without an element ends all.
      ("a---", "-|", "--b-", "-|--"),
      ("|", "a-", "b-", "|-"),
    ])
  func combineLatest(first: String, second: String, third: String, result: String) {
    let diagram = marbles(first, second, third) { sources, _ in
      .combineLatest(sources).map { $0.joined() }
    }
    #expect(diagram == result)
  }

  @Test("combineLatest of no stream sends one empty array and ends, of one stream its elements")
  func combineLatestOfFew() {
    let text: @Sendable ([String]) -> String = { "[\($0.joined())]" }
    #expect(marbles("-") { _, _ in .combineLatest([]).map(text) } == "([]|)")
    #expect(
      marbles("a-b|") { sources, _ in .combineLatest(sources).map(text) } == "([a])-([b])|")
  }

  @Test(
    "debounce sends the newest element when no other one arrives for the duration",
    arguments: [
      ("a---b---", "--a---b-"),
      ("abc---", "----c-"),
      // The timer of the second fires before the input of the second.
      ("a-b--", "--a-b"),
      ("ab-cd--e-", "---b--d--"),
      ("a|", "-(a|)"),
      ("a--|", "--a|"),
      ("abc|", "---(c|)"),
      ("--|", "--|"),
    ])
  func debounce(input: String, result: String) {
    let diagram = marbles(input) { sources, timer in
      sources[0].timed(.debounce, for: .seconds(2), timer: timer)
    }
    #expect(diagram == result)
  }

  @Test(
    "throttle sends the first element at once, and then the newest one of each duration",
    arguments: [
      ("a---b---", "a---b---"),
      ("abcdefg---", "a-b-d-f-g-"),
      ("ab--c---", "a-b-c---"),
      ("ab---cd--", "a-b--c-d-"),
      ("a-b-c", "a-b-c"),
      ("a|", "a|"),
      ("ab|", "a-(b|)"),
      ("abc|", "a-b(c|)"),
      ("--|", "--|"),
    ])
  func throttle(input: String, result: String) {
    let diagram = marbles(input) { sources, timer in
      sources[0].timed(.throttle, for: .seconds(2), timer: timer)
    }
    #expect(diagram == result)
  }

  @Test("A duration of zero or less passes everything", arguments: [Duration.zero, .seconds(-1)])
  func zero(duration: Duration) {
    #expect(
      marbles("ab-c|") { sources, timer in
        sources[0].timed(.debounce, for: duration, timer: timer)
      } == "ab-c|")
    #expect(
      marbles("ab-c|") { sources, timer in
        sources[0].timed(.throttle, for: duration, timer: timer)
      } == "ab-c|")
  }

  @Test("Operators of time can follow each other")
  func chain() {
    let diagram = marbles("abc---d-|") { sources, timer in
      sources[0].timed(.throttle, for: .seconds(2), timer: timer)
        .timed(.debounce, for: .seconds(1), timer: timer)
    }
    #expect(diagram == "-a-b-c-d|")
  }
}
