import Synchronization
public import Testing

/// What must hold, and does not.
public struct Violation: Error, CustomStringConvertible {
  /// What does not hold.
  public let description: String
}

/// Throws what does not hold.
public func mustHold(
  _ condition: Bool, _ sentence: @autoclosure () -> String
) throws(Violation) {
  if !condition { throw Violation(description: sentence()) }
}

/// Drives a value through every sequence of events up to a length, and prints how many those were.
///
/// The value is copied, so that sequences share their beginnings: it must hold nothing that is
/// changed through a reference.
///
/// - Parameter step: Takes an event and checks what must hold after it; false where the event cannot
///   come, so that there is no such sequence.
public func exhaust<Walk, Event>(
  _ name: String, events: [Event], length: Int, from start: Walk,
  sourceLocation: SourceLocation = #_sourceLocation,
  step: @escaping (inout Walk, Event) throws -> Bool
) {
  var search = Exhaustion<Walk, Event>(events: events, step: step)
  search.search(from: { start }, length)
  search.report(name, length, at: sourceLocation)
}

/// Drives values through every sequence of events up to a length, and prints how many those were.
///
/// Every sequence begins with a value of its own, which may hold references.
public func exhaust<Walk, Event>(
  _ name: String, events: [Event], length: Int, making start: @escaping () -> Walk,
  sourceLocation: SourceLocation = #_sourceLocation,
  step: @escaping (inout Walk, Event) throws -> Bool
) {
  var search = Exhaustion<Walk, Event>(events: events, step: step, start: start)
  search.search(from: start, length)
  search.report(name, length, at: sourceLocation)
}

private struct Exhaustion<Walk, Event> {
  let events: [Event]
  let step: (inout Walk, Event) throws -> Bool
  var start: (() -> Walk)?
  private var trace: [Event] = []
  private var taken: Set<Int> = []
  private var count = 0
  private var failure: String?

  init(
    events: [Event], step: @escaping (inout Walk, Event) throws -> Bool,
    start: (() -> Walk)? = nil
  ) {
    self.events = events
    self.step = step
    self.start = start
  }

  /// Goes through all sequences; if one fails, then through the shorter ones first, for the shortest
  /// that does.
  mutating func search(from begin: () -> Walk, _ length: Int) {
    go(from: begin(), left: length)
    guard failure != nil, length > 1 else { return }
    failure = nil
    count = 0
    for left in 1...length where failure == nil { go(from: begin(), left: left) }
  }

  /// Goes on with every event behind the trace, until something does not hold.
  private mutating func go(from walk: Walk, left: Int) {
    guard left > 0 else { return }
    for (index, event) in events.enumerated() where failure == nil {
      trace.append(event)
      defer { trace.removeLast() }
      do {
        var next = try start.map { try replay($0()) } ?? walk
        guard try step(&next, event) else { continue }
        taken.insert(index)
        count += 1
        go(from: next, left: left - 1)
      } catch {
        let steps = trace.map { "\($0)" }.joined(separator: ", ")
        failure = "it does not hold after \(steps): \(error)"
      }
    }
  }

  private func replay(_ start: Walk) throws -> Walk {
    var walk = start
    for event in trace.dropLast() { _ = try step(&walk, event) }
    return walk
  }

  func report(_ name: String, _ length: Int, at location: SourceLocation) {
    if let failure { Issue.record("\(name): \(failure)", sourceLocation: location) }
    let idle = events.indices.filter { !taken.contains($0) }.map { "\(events[$0])" }
    if failure == nil, !idle.isEmpty {
      Issue.record("\(name): \(idle) never came", sourceLocation: location)
    }
    print("\(name): \(grouped(count)) sequences of up to \(length) events")
  }

  private func grouped(_ number: Int) -> String {
    var digits = Array("\(number)")
    for index in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: index) }
    return String(digits)
  }
}

/// Keeps what was told until a walk takes it, so that the walks of one test can share it.
public final class Tape<Element: Sendable>: Sendable {
  private let storage = Mutex<[Element]>([])

  /// Makes one on which nothing is noted.
  public init() {}

  /// Keeps an element.
  public func note(_ element: Element) {
    storage.withLock { $0.append(element) }
  }

  /// Gives what has been noted since the last call.
  public func take() -> [Element] {
    storage.withLock { elements in
      if elements.isEmpty { return [] }
      defer { elements = [] }
      return elements
    }
  }
}
