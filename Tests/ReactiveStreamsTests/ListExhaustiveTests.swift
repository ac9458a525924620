import TestSupport
import Testing

@testable import ReactiveStreams

/// The lists under the machines, which tidy themselves up when they have grown.
@Suite("Lists, every sequence")
struct ListExhaustiveTests {
  private enum QueueStep: CaseIterable { case append, popFirst, removeAll }

  private struct Queue {
    private var queue = FIFO<Int>()
    private var model: [Int] = []
    private var next = 0

    /// A queue to which so many were appended, and from which so many were taken.
    init(appended: Int, popped: Int) {
      for _ in 0..<appended { append() }
      for _ in 0..<popped { _ = queue.popFirst() }
      model.removeFirst(popped)
    }

    private mutating func append() {
      queue.append(next)
      model.append(next)
      next += 1
    }

    mutating func take(_ step: QueueStep) throws {
      switch step {
      case .append: append()
      case .popFirst:
        let expected = model.isEmpty ? nil : model.removeFirst()
        try mustHold(queue.popFirst() == expected, "the first one is \(expected ?? -1)")
      case .removeAll:
        queue.removeAll()
        model = []
      }
      try mustHold(queue.count == model.count, "it has \(model.count)")
      try mustHold(queue.isEmpty == model.isEmpty, "it knows whether it is empty")
    }

    /// What comes out in the end is what is in it.
    func drain() throws {
      var rest = queue
      for element in model { try mustHold(rest.popFirst() == element, "\(element) comes next") }
      try mustHold(rest.popFirst() == nil, "nothing comes after the last one")
    }
  }

  @Test(
    "A queue gives everything once and in its order, also around its tidying",
    arguments: [(0, 0), (63, 29), (70, 30), (34, 31)])
  func queue(appended: Int, popped: Int) {
    exhaust(
      "FIFO, \(popped) of \(appended) taken", events: QueueStep.allCases, length: 8,
      from: Queue(appended: appended, popped: popped)
    ) { queue, step in
      try queue.take(step)
      try queue.drain()
      return true
    }
  }

  private enum ListStep: CaseIterable {
    case append, removeFirst, removeMiddle, removeLast, removeStranger, lend, takeBack
  }

  private struct Subscribers {
    private var list = SubscriberList<Int>()
    private var model: [(id: UInt64, subscriber: Subscriber<Int>)] = []
    private var removed: [UInt64] = []
    private var lastID: UInt64?
    private var lent: SubscriberList<Int>.Slots?
    /// Who is lent and there, and who has gone since.
    private var (lentIDs, departed): (Set<UInt64>, [UInt64]) = ([], [])

    /// A list of so many, of which the first ones are gone.
    init(appended: Int, removed: Int) {
      for _ in 0..<appended { append() }
      for _ in 0..<removed {
        let (id, _) = model.removeFirst()
        _ = list.remove(id)
        self.removed.append(id)
      }
    }

    private mutating func append() {
      let subscriber = Subscriber<Int> { _ in }
      model.append((list.append(subscriber), subscriber))
    }

    mutating func take(_ step: ListStep) throws -> Bool {
      switch step {
      case .append:
        append()
        guard let new = model.last else { break }
        try mustHold(lastID.map { new.id > $0 } ?? true, "identifiers grow")
        lastID = new.id
      case .lend:
        guard lent == nil else { return false }
        lent = list.lend()
        lentIDs = Set(model.map(\.id))
      case .takeBack:
        guard var audience = lent else { return false }
        list.takeBack(&audience)
        let left = audience.slots.compactMap { $0.element == nil ? nil : $0.id }
        try mustHold(left == departed.sorted(), "it leaves those who have gone")
        (lent, lentIDs, departed) = (nil, [], [])
      case .removeStranger:
        guard lent == nil else { return false }
        let stranger = removed.last ?? 1_000
        try mustHold(list.remove(stranger) == nil, "one that is gone is not given again")
      case .removeFirst, .removeMiddle, .removeLast:
        guard !model.isEmpty else { return false }
        let last = model.count - 1
        let index = step == .removeFirst ? 0 : step == .removeLast ? last : last / 2
        let (id, subscriber) = model.remove(at: index)
        let gone = list.remove(id)
        if lentIDs.remove(id) != nil {
          try mustHold(gone == nil, "one that is lent is not given")
          departed.append(id)
        } else {
          try mustHold(gone === subscriber, "it gives the one that it was given")
        }
        removed.append(id)
      }
      try check()
      return true
    }

    private func check() throws {
      let present = list.seats.slots.filter { $0.element != nil }
      try mustHold(list.count == model.count, "it counts those who are there")
      let own = model.filter { !lentIDs.contains($0.id) }
      try mustHold(
        present.elementsEqual(own) { $0.id == $1.id && $0.element?.subscriber === $1.subscriber },
        "it has those who are there, in their order")
      try mustHold(
        list.seats.slots.count <= max(16, 2 * model.count), "holes are never more than half of it")
    }
  }

  @Test(
    "A list of subscribers has those who are there, in their order, also around its tidying",
    arguments: [(0, 0), (18, 6), (40, 18)])
  func subscribers(appended: Int, removed: Int) {
    exhaust(
      "SubscriberList, \(removed) of \(appended) gone", events: ListStep.allCases, length: 6,
      from: Subscribers(appended: appended, removed: removed)
    ) { list, step in try list.take(step) }
  }
}
