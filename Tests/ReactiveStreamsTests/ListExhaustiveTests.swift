import TestSupport
import Testing

@testable import ReactiveStreams

/// The lists of the machines, which shrink their storage when a part of it is unused.
@Suite("Lists, every sequence")
struct ListExhaustiveTests {
  private enum QueueStep: CaseIterable { case append, popFirst, removeAll }

  private struct Queue {
    private var queue = FIFO<Int>()
    private var model: [Int] = []
    private var next = 0

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
        try mustHold(queue.popFirst() == expected, "the first element is \(expected ?? -1)")
      case .removeAll:
        _ = queue.takeAll()
        model = []
      }
      try mustHold(queue.count == model.count, "it has \(model.count) elements")
      try mustHold(queue.isEmpty == model.isEmpty, "it is empty if it has no elements")
    }

    /// Pops all elements of a copy.
    func drain() throws {
      var rest = queue
      for element in model { try mustHold(rest.popFirst() == element, "\(element) is next") }
      try mustHold(rest.popFirst() == nil, "no element follows the last one")
    }
  }

  @Test(
    "A queue returns each element once and in order, also where its storage shrinks",
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
    case append, insertBeforeLast, removeFirst, removeMiddle, removeLast, removeUnknown
  }

  private final class Element: Sendable {}

  private struct Slots {
    private var list = SlotList<Int, Element>()
    private var model: [(id: Int, element: Element)] = []
    private var removed: [Int] = []
    /// Identifiers grow by two, so that one can be inserted before the last one.
    private var nextID = 2

    init(appended: Int, removed: Int) {
      for _ in 0..<appended { append() }
      for _ in 0..<removed {
        let (id, _) = model.removeFirst()
        _ = list.remove(id)
        self.removed.append(id)
      }
    }

    private mutating func append() {
      model.append((nextID, Element()))
      list.insert(model[model.count - 1].element, for: nextID)
      nextID += 2
    }

    mutating func take(_ step: ListStep) throws -> Bool {
      switch step {
      case .append: append()
      case .insertBeforeLast:
        // Each identifier is used once, also one whose element was removed.
        let id = nextID - 3
        guard model.last?.id == nextID - 2, !removed.contains(id),
          !model.contains(where: { $0.id == id })
        else { return false }
        let new = (id: id, element: Element())
        model.insert(new, at: model.count - 1)
        list.insert(new.element, for: id)
      case .removeUnknown:
        try mustHold(list.remove(removed.last ?? 1_000) == nil, "an element is removed once")
      case .removeFirst, .removeMiddle, .removeLast:
        guard !model.isEmpty else { return false }
        let last = model.count - 1
        let index = step == .removeFirst ? 0 : step == .removeLast ? last : last / 2
        let (id, element) = model.remove(at: index)
        try mustHold(list.remove(id) === element, "it returns the element that was inserted")
        removed.append(id)
      }
      try check()
      return true
    }

    private func check() throws {
      try mustHold(list.count == model.count, "it counts its elements")
      let present = list.slots.filter { $0.element != nil }
      try mustHold(
        present.elementsEqual(model) { $0.id == $1.id && $0.element === $1.element },
        "it has its elements in the order of their identifiers")
      try mustHold(
        list.slots.count <= max(16, 2 * model.count), "at most half of the slots are empty")
    }
  }

  @Test(
    "A slot list has its elements in order, also where empty slots are removed",
    arguments: [(0, 0), (18, 6), (40, 18)])
  func slots(appended: Int, removed: Int) {
    exhaust(
      "SlotList, \(removed) of \(appended) removed", events: ListStep.allCases, length: 6,
      from: Slots(appended: appended, removed: removed)
    ) { list, step in try list.take(step) }
  }
}
