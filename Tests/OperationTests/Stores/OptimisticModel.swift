import Operation

/// An event of a store with optimistic edits. Works and runs have numbers.
enum OptimisticStep: Sendable, Equatable {
  /// An edit appends its number while its work is in flight.
  case edit(Int)
  case succeed(Int)
  case fail(Int)
  case cancelWork(Int)
  case fetch(Int)
  /// A run returns 100 plus its number.
  case land(Int)
  /// A run yields 200 plus its number, and continues.
  case yield(Int)
  case failRun(Int)
  case cancelRun(Int)
  /// A caller writes the number.
  case push(Int)
  case reset
}

/// A plain model of a store with optimistic edits: the value that the server returned last, the
/// time of its request, and all edits since the last reset.
struct OptimisticModel: Sendable {
  private struct Edit: Sendable {
    let number: Int
    /// The time of its success.
    var confirmedAt: Int?
  }

  private struct Base: Sendable {
    var value: [Int] = []
    /// The time of its request.
    var requestedAt = 0
    /// The run that has yielded it, if the yield can still be undone.
    var run: Int?
  }

  private var time = 0
  /// The last base value, after those that are restored when it is undone.
  private var bases = [Base()]
  private var edits: [Edit] = []
  /// The times of the requests of the runs that are in flight.
  private var runs: [Int: Int] = [:]

  private var base: Base { bases.last ?? Base() }

  var confirmed: [Int] {
    edits.reduce(base.value) { value, edit in
      guard let time = edit.confirmedAt, time > base.requestedAt else { return value }
      return value + [edit.number]
    }
  }

  var shown: [Int] {
    edits.reduce(base.value) { value, edit in
      if let time = edit.confirmedAt, time <= base.requestedAt { return value }
      return value + [edit.number]
    }
  }

  var isOptimistic: Bool { edits.contains { $0.confirmedAt == nil } }

  mutating func perform(_ step: OptimisticStep) {
    time += 1
    switch step {
    case .edit(let number): edits.append(Edit(number: number))
    case .succeed(let number):
      guard let index = edits.firstIndex(where: { $0.number == number }) else { break }
      edits[index].confirmedAt = time
    case .fail(let number), .cancelWork(let number): edits.removeAll { $0.number == number }
    case .fetch(let number): runs[number] = time
    case .land(let number):
      guard let requestedAt = runs.removeValue(forKey: number) else { break }
      bases = [Base(value: [100 + number], requestedAt: requestedAt)]
    case .yield(let number):
      guard let requestedAt = runs[number] else { break }
      bases.append(Base(value: [200 + number], requestedAt: requestedAt, run: number))
    case .failRun(let number):
      guard runs.removeValue(forKey: number) != nil else { break }
      guard let last = bases.lastIndex(where: { $0.run == number }) else { break }
      bases[last].run = nil
      bases.removeFirst(last)
    case .cancelRun(let number):
      if runs.removeValue(forKey: number) != nil { bases.removeAll { $0.run == number } }
    case .push(let value): bases = [Base(value: [value], requestedAt: time)]
    case .reset:
      bases = [Base()]
      edits = []
      runs = [:]
    }
  }
}

/// Performs the steps on a store through its public members, one step after the other.
final class OptimisticDriver: Sendable {
  typealias Store = OperationStore<QueryState<[Int], any Error>>

  private struct Calls: Sendable {
    var next = 0
    var orders: [Int: Recorder<Order>] = [:]
    var runs: [Int: Task<Void, Never>] = [:]
    var works: [Int: Task<Void, Never>] = [:]
    var ends: [Int: Monitor<Bool?>] = [:]
  }

  private enum Order: Sendable {
    case yield([Int])
    case land([Int])
    case fail
  }

  let store: Store
  private let calls: Monitor<Calls>
  private let began = EventLog<Int>()
  private let yielded = EventLog<Int>()

  init() {
    let (calls, began, yielded) = (Monitor(Calls()), began, yielded)
    self.calls = calls
    let query = Query<[Int], any Error>(path: ["optimistic"]) { _, continuation in
      let (number, orders) = calls.update { ($0.next, $0.orders[$0.next] ?? Recorder()) }
      began.append(number)
      var done = 0
      while true {
        let count = done + 1
        await orders.wait(forCount: count)
        switch orders.all[done] {
        case .yield(let value):
          continuation.yield(value)
          yielded.append(number)
        case .land(let value): return value
        case .fail: throw Failed()
        }
        done += 1
      }
    }
    store = .detached(query: query, initialValue: [])
  }

  func perform(_ step: OptimisticStep) async {
    switch step {
    case .edit(let number): await edit(number)
    case .succeed(let number):
      calls.value.ends[number]?.update { $0 = true }
      await calls.value.works[number]?.value
    case .fail(let number):
      calls.value.ends[number]?.update { $0 = false }
      await calls.value.works[number]?.value
    case .cancelWork(let number):
      calls.value.works[number]?.cancel()
      await calls.value.works[number]?.value
    case .fetch(let number): await fetch(number)
    case .land(let number): await end(number, .land([100 + number]))
    case .yield(let number):
      let count = yielded.count
      calls.value.orders[number]?.append(.yield([200 + number]))
      await yielded.wait(for: count + 1)
    case .failRun(let number): await end(number, .fail)
    case .cancelRun(let number):
      calls.value.runs[number]?.cancel()
      await calls.value.runs[number]?.value
      calls.value.orders[number]?.append(.fail)
    case .push(let value): store.setResult(to: .success([value]))
    case .reset: store.resetState()
    }
  }

  private func edit(_ number: Int) async {
    let end = Monitor<Bool?>(nil)
    let entered = Latch()
    let work = Task { [store] in
      do {
        try await store.optimistically {
          $0?.append(number)
        } while: {
          entered.open()
          try await withTaskCancellationHandler {
            await end.wait { $0 != nil }
            if end.value == false { throw Failed() }
          } onCancel: {
            end.update { $0 = false }
          }
        }
      } catch {}
    }
    calls.update {
      $0.ends[number] = end
      $0.works[number] = work
    }
    await entered.wait()
  }

  private func fetch(_ number: Int) async {
    let count = began.count
    calls.update {
      $0.next = number
      $0.orders[number] = Recorder()
    }
    let run = Task { [store] in _ = try? await store.run() }
    calls.update { $0.runs[number] = run }
    await began.wait(for: count + 1)
  }

  private func end(_ number: Int, _ order: Order) async {
    calls.value.orders[number]?.append(order)
    await calls.value.runs[number]?.value
  }

  /// Ends all works and runs that have not ended.
  func finish() async {
    for number in calls.value.works.keys { await perform(.fail(number)) }
    for number in calls.value.runs.keys { await perform(.failRun(number)) }
  }
}
