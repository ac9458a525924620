import Synchronization
public import Testing

/// An error for a condition that does not hold.
public struct Violation: Error, CustomStringConvertible {
  /// The condition.
  public let description: String
}

/// Throws a violation with a sentence if a condition is false.
public func mustHold(
  _ condition: Bool, _ sentence: @autoclosure () -> String
) throws(Violation) {
  if !condition { throw Violation(description: sentence()) }
}

/// Takes a value through every sequence of events up to a length, and prints their number.
///
/// The value is copied, so that sequences share their beginnings. It must not have state that is
/// changed through a reference.
///
/// - Parameter step: Takes an event and checks the conditions after it. Returns false where the
///   event cannot occur, so that there is no such sequence.
public func exhaust<Walk, Event>(
  _ name: String, events: [Event], length: Int, from start: Walk,
  sourceLocation: SourceLocation = #_sourceLocation,
  step: @escaping (inout Walk, Event) throws -> Bool
) {
  /// Continues the walk with every event, until a condition does not hold.
  func go(_ search: Exhaustion, from walk: Walk, left: Int) throws {
    var index = 0
    while index < search.eventCount {
      var next = walk
      search.trace.append(index)
      if try step(&next, events[index]) {
        search.note(index)
        if left > 1 { try go(search, from: next, left: left - 1) }
      }
      search.trace.removeLast()
      index += 1
    }
  }
  let search = Exhaustion(eventCount: events.count)
  search.search(length) { try go(search, from: start, left: $0) }
  search.report(name, length, events.map { "\($0)" }, at: sourceLocation)
}

/// Takes values through every sequence of events up to a length, and prints their number.
///
/// Every sequence begins with a new value, which may have references.
///
/// - Parameter again: Takes an event that was checked before at the same place of the sequence. The
///   default is `step`.
public func exhaust<Walk, Event>(
  _ name: String, events: [Event], length: Int, making start: @escaping () -> Walk,
  again: ((inout Walk, Event) throws -> Void)? = nil,
  sourceLocation: SourceLocation = #_sourceLocation,
  step: @escaping (inout Walk, Event) throws -> Bool
) {
  func go(_ search: Exhaustion, left: Int) throws {
    var index = 0
    while index < search.eventCount {
      var walk = start()
      for earlier in search.trace {
        if let again {
          try again(&walk, events[earlier])
        } else {
          _ = try step(&walk, events[earlier])
        }
      }
      search.trace.append(index)
      if try step(&walk, events[index]) {
        search.note(index)
        if left > 1 { try go(search, left: left - 1) }
      }
      search.trace.removeLast()
      index += 1
    }
  }
  let search = Exhaustion(eventCount: events.count)
  search.search(length) { try go(search, left: $0) }
  search.report(name, length, events.map { "\($0)" }, at: sourceLocation)
}

/// The position of a search. Events are stored as indices: generic code is slow in debug builds,
/// and this type is called millions of times.
private final class Exhaustion {
  let eventCount: Int
  var trace: [Int] = []
  private var taken: [Bool]
  private var count = 0
  private var failure: (trace: [Int], error: any Error)?

  init(eventCount: Int) {
    self.eventCount = eventCount
    taken = Array(repeating: false, count: eventCount)
  }

  func note(_ index: Int) {
    taken[index] = true
    count += 1
  }

  /// Takes all sequences. If one fails, searches again in the order of their lengths, to report the
  /// shortest one that fails.
  func search(_ length: Int, _ go: (Int) throws -> Void) {
    attempt(length, go)
    guard failure != nil, length > 1 else { return }
    failure = nil
    count = 0
    for left in 1...length where failure == nil { attempt(left, go) }
  }

  private func attempt(_ length: Int, _ go: (Int) throws -> Void) {
    trace = []
    do { try go(length) } catch { failure = (trace, error) }
  }

  func report(_ name: String, _ length: Int, _ events: [String], at location: SourceLocation) {
    if let failure {
      let steps = failure.trace.map { events[$0] }.joined(separator: ", ")
      Issue.record(
        "\(name): it does not hold after \(steps): \(failure.error)", sourceLocation: location)
    }
    let idle = events.indices.filter { !taken[$0] }.map { events[$0] }
    if failure == nil, !idle.isEmpty {
      Issue.record("\(name): \(idle) never occurred", sourceLocation: location)
    }
    print("\(name): \(grouped(count)) sequences of up to \(length) events")
  }

  private func grouped(_ number: Int) -> String {
    var digits = Array("\(number)")
    for index in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: index) }
    return String(digits)
  }
}

/// Stores elements until a walk takes them, so that the walks of one test can share it.
public final class Tape<Element: Sendable>: Sendable {
  private let storage = Mutex<[Element]>([])

  /// Creates an empty tape.
  public init() {}

  /// Appends an element.
  public func note(_ element: Element) {
    storage.withLock { $0.append(element) }
  }

  /// Returns the elements since the last call, and removes them.
  public func take() -> [Element] {
    storage.withLock { elements in
      if elements.isEmpty { return [] }
      defer { elements = [] }
      return elements
    }
  }
}
