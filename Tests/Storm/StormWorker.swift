import Operation
import Synchronization

/// A worker of a storm, which performs random operations one after the other. They depend only on
/// its seed.
struct StormWorker {
  typealias Store = OperationStore<StormRequests.State>

  let storm: Storm
  let model: StormModel
  private var random: StormRandom
  private var tasks: [Task<Void, Never>] = []
  private var witnesses: [StormWitness] = []

  init(_ storm: Storm, _ model: StormModel, seed: UInt64) {
    (self.storm, self.model) = (storm, model)
    random = StormRandom(seed: seed)
  }

  private var client: OperationClient { storm.client }

  mutating func run() async -> [StormWitness] {
    while storm.takeStep() {
      await step()
      if tasks.count > 12 { await end(tasks.removeFirst()) }
      if witnesses.count > 40 { witnesses.removeFirst().subscription.cancel() }
    }
    for task in tasks { await end(task) }
    return witnesses
  }

  private func end(_ task: Task<Void, Never>) async {
    task.cancel()
    await task.value
  }

  mutating func number(_ range: Range<Int>) -> Int { .random(in: range, using: &random) }

  mutating func store() -> Store {
    let store = client.store(for: storm.requests.query(number(0..<storm.size)))
    storm.trace(store, at: store.path)
    return store
  }

  private mutating func pages() -> OperationStore<StormRequests.Pages> {
    let store = client.store(for: storm.requests.pages(number(0..<8)))
    storm.trace(store, at: store.path)
    return store
  }

  mutating func spawn(_ work: @escaping @Sendable () async throws -> Void) {
    let storm = storm
    storm.began()
    tasks.append(
      Task {
        try? await work()
        storm.ended()
      })
  }

  private mutating func step() async {
    switch number(0..<44) {
    case 0..<5:
      let store = store()
      spawn { try await store.run() }
    case 5: _ = store().runTask()
    case 6:
      let task = store().runTask()
      spawn { _ = try await task.runIfNeeded() }
    case 7..<9: await changePages()
    case 9:
      let (store, number) = (
        client.store(for: storm.requests.mutation(number(0..<9))), number(0..<50)
      )
      storm.trace(store, at: store.path)
      spawn { try await store.mutate(with: number) }
    case 10: client.invalidate(storm.requests.query(number(0..<storm.size)))
    case 11: client.invalidate(matching: ["query", number(0..<10)])
    case 12: reset()
    case 13: store().setResult(to: .success(Tagged(edits: [number(0..<100)])))
    case 14: store().withExclusiveAccess { $0.currentValue?.edits = [] }
    case 15..<18: edit()
    case 18..<22: watch()
    case 22:
      if !witnesses.isEmpty {
        witnesses.remove(at: number(0..<witnesses.count)).subscription.cancel()
      }
    case 23: readStream()
    case 24: followChain()
    case 25: store().cancel()
    case 26: await clearAndCancel()
    case 27: storm.requests.dam.release()
    case 28..<32: useWrapper()
    case 32: readOperators()
    case 33: model.broadcast.send(number(0..<100))
    case 34..<42: useSources()
    default: await storm.clock.advance(by: .milliseconds(number(100..<3_000)))
    }
    check(store())
  }

  private mutating func changePages() async {
    let store = pages()
    switch number(0..<6) {
    case 0: spawn { try await store.fetchPreviousPage() }
    case 1: spawn { try await store.fetchAllPages() }
    case 2: store.resetState()
    case 3:
      let fails = number(0..<2) == 0
      let clock = storm.clock
      spawn {
        try await store.optimistically {
          $0[id: 0]?.value.edits.append(1)
        } while: {
          try await clock.sleep(for: .seconds(1))
          if fails { throw StormFailure() }
        }
      }
    default: spawn { try await store.fetchNextPage() }
    }
    let ids = store.currentValue.map(\.id)
    if Set(ids).count != ids.count || !zip(ids, ids.dropFirst()).allSatisfy({ $0 + 1 == $1 }) {
      storm.fail("the pages of \(store.path) are \(ids)")
    }
  }

  private mutating func reset() {
    let store = store()
    let ticket = storm.requests.nextTicket()
    store.resetState()
    storm.noteReset(of: store, ticket)
  }

  /// Checks that a store does not display the value of a run that began before the last reset.
  private func check(_ store: Store) {
    let reset = storm.lastReset(of: store)
    if let ticket = store.confirmedValue?.ticket, ticket < reset {
      storm.fail("\(store.path) displays a value of run \(ticket) after the reset \(reset)")
    }
  }

  private mutating func edit() {
    let (store, number, outcome) = (store(), number(0..<100), number(0..<3))
    let clock = storm.clock
    spawn {
      try await store.optimistically {
        $0?.edits.append(number)
      } while: {
        if outcome > 0 { try await clock.sleep(for: .seconds(outcome)) }
        if outcome == 2 { throw StormFailure() }
      }
    }
  }

  private mutating func watch() {
    let store = number(0..<6) == 0 ? saved().store : store()
    let log = StormLog()
    let operation = number(0..<40)
    let (requests, client) = (storm.requests, client)
    let subscription = store.subscribe { [weak store, weak client] event in
      guard case .stateChanged(let state) = event else { return }
      // Limited: handlers that change each other's stores, or their own, would never end.
      guard log.append(state.print) < 1_000 else { return }
      switch operation {
      case 0: _ = store?.state
      case 1: store?.subscribe { _ in }.cancel()
      case 2: client?.invalidate(requests.query(0))
      case 3: client?.store(for: requests.query(9)).currentValue = Tagged()
      default: break
      }
    }
    witnesses.append(
      StormWitness(
        store: ObjectIdentifier(store), path: store.path, log: log, subscription: subscription,
        present: { store.state.print }, cancelRuns: { store.cancel() }))
  }

  private mutating func readStream() {
    let (store, count) = (store(), number(1..<6))
    spawn {
      var left = count
      for await _ in store.states {
        left -= 1
        if left == 0 { break }
      }
    }
  }

  private mutating func followChain() {
    let (store, requests, size) = (store(), storm.requests, storm.size)
    spawn {
      for await _ in store.chain({ value in requests.query((value?.edits.count ?? 0) % size) }) {
        break
      }
    }
  }

  private mutating func clearAndCancel() async {
    let id = number(0..<10)
    switch number(0..<6) {
    case 0: client.clearStores(matching: ["query", id])
    case 1: client.clearStore(with: ["pages", id])
    case 2: client.cancel(matching: ["query", id])
    case 3: client.reset(matching: ["mutation"])
    case 4: storm.pressure.send(.critical)
    default:
      let client = client
      spawn { try await client.ensure(matching: ["query", id], where: .observed) }
    }
  }
}

/// A generator whose numbers depend only on the seed.
struct StormRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
