import TestSupport
import Testing

@testable import Operation

/// The small parts that the machines use.
@Suite("Parts, every sequence") struct SupportExhaustiveTests {
  private enum HeapStep { case insert(Int), popFirst }

  private struct Pair {
    var heap = Heap<Int>()
    var list: [Int] = []

    mutating func take(_ step: HeapStep) throws {
      switch step {
      case .insert(let element):
        heap.insert(element)
        list.append(element)
        list.sort()
      case .popFirst:
        let expected = list.isEmpty ? nil : list.removeFirst()
        try mustHold(heap.popFirst() == expected, "the least element is returned")
      }
      try mustHold(heap.first == list.first, "the least element is the first one")
      try mustHold(heap.elements.sorted() == list, "no element is lost")
    }
  }

  @Test("A heap returns the least element first, whatever the order of insertion was") func heap() {
    let events = (0..<4).map(HeapStep.insert) + [.popFirst]
    exhaust("Heap", events: events, length: 7, from: Pair()) { pair, step in
      try pair.take(step)
      return true
    }
  }

  private enum PathStep { case set(Int), remove(Int) }

  private struct Index {
    static let paths: [OperationPath] = [[], ["a"], ["a", 1], ["a", 1, "x"], ["b", 1]]
    var index = PathIndex<Int>()
    var list: [Int: Int] = [:]
    var next = 0

    mutating func take(_ step: PathStep) throws -> Bool {
      next += 1
      switch step {
      case .set(let path):
        index[Self.paths[path]] = next
        list[path] = next
      case .remove(let path):
        index[Self.paths[path]] = nil
        list[path] = nil
      }
      try check()
      return true
    }

    private func check() throws {
      for (number, path) in Self.paths.enumerated() {
        try mustHold(index[path] == list[number], "\(path) has what was set")
        let below = list.filter { path.isPrefix(of: Self.paths[$0.key]) }.map(\.value)
        let found = index.tree(matching: path).values.sorted()
        try mustHold(found == below.sorted(), "below \(path) is \(below)")
      }
      let nodes = Set(
        list.keys.flatMap { path in
          let elements = Self.paths[path].map { "\($0)" }
          return (0...elements.count).map { elements.prefix($0).joined(separator: "/") }
        })
      try mustHold(index.count == list.count, "the count is right")
      try mustHold(index.nodeCount == nodes.subtracting([""]).count, "no empty branch is left")
    }
  }

  @Test("An index of paths returns what is set and nothing else, and keeps no empty branch")
  func pathIndex() {
    let paths = Index.paths.indices
    exhaust(
      "PathIndex", events: paths.map(PathStep.set) + paths.map(PathStep.remove), length: 4,
      from: Index()
    ) { index, step in try index.take(step) }
  }

  private enum ProgressStep: CaseIterable {
    case begin, retry, beginLate, beginOvertaken, add, addLate
  }

  private final class Attempts {
    let progress = PageStart<Int, Int>()
    var attempt = 0
    var retry = 0
    var pages: [Int] = []
    var next = 0

    func take(_ step: ProgressStep) throws -> Bool {
      next += 1
      switch step {
      case .begin:
        attempt += 1
        let (number, present) = progress.begin(retry)
        try mustHold(number == attempt, "attempts are counted")
        try mustHold(present.map(\.id) == pages, "an attempt begins with the present pages")
      case .retry:
        attempt += 1
        retry += 1
        try mustHold(progress.begin(retry).attempt == attempt, "a retry is the next attempt")
      case .beginLate, .beginOvertaken:
        let (number, _) =
          step == .beginLate ? progress.begin(retry, isGivenUp: true) : progress.begin(retry - 1)
        progress.add(PaginatedPage(id: next, value: 0), attempt: number)
      case .add, .addLate:
        let number = step == .add ? attempt : attempt - 1
        guard number > 0 else { return false }
        progress.add(PaginatedPage(id: next, value: 0), attempt: number)
        if step == .add { pages.append(next) }
      }
      let present = progress.begin(isGivenUp: true).fetched.map(\.id)
      try mustHold(present == pages, "only the current attempt adds")
      return true
    }
  }

  @Test("Only the current attempt adds pages for the next one") func pageProgress() {
    exhaust("PageStart", events: ProgressStep.allCases, length: 6, making: { Attempts() }) {
      attempts, step in try attempts.take(step)
    }
  }

  private enum ShotStep: CaseIterable { case wait, cancel, occur, finish }

  /// A one-shot and the one task that waits for it. The test runs the steps of the task.
  private final class Shot {
    let shot = OneShot<Bool>()
    let executor = HandExecutor()
    let ended = Tape<Bool>()
    var task: Task<Void, Never>?
    var result: Bool?
    var returned: [Bool] = []

    deinit {
      shot.finish(false)
      executor.run()
    }

    func take(_ step: ShotStep) throws -> Bool {
      switch step {
      case .wait:
        guard task == nil else { return false }
        task = Task(executorPreference: executor) { [shot, ended] in
          ended.note(await shot.wait())
        }
      case .cancel:
        guard let task else { return false }
        task.cancel()
        if returned.isEmpty { result = result ?? false }
      case .occur, .finish:
        shot.finish(step == .occur)
        result = result ?? (step == .occur)
      }
      executor.run()
      returned += ended.take()
      let expected = task == nil ? [] : result.map { [$0] } ?? []
      try mustHold(returned == expected, "\(expected) is returned, and not \(returned)")
      return true
    }
  }

  @Test("A one-shot returns its first value to the waiter, once") func oneShot() {
    exhaust("OneShot", events: ShotStep.allCases, length: 6, making: { Shot() }) {
      shot, step in try shot.take(step)
    }
  }
}
