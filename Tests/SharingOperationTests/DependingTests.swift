import Observation
import SharingOperation
import Synchronization
import Testing

struct TeamQuery: QueryRequest, Hashable {
  let name: String

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    name.count
  }
}

struct NameQuery: QueryRequest, Hashable {
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<String, any Error>
  ) async throws -> String {
    "ann"
  }
}

@Suite(.timeLimit(.minutes(5))) struct Depending {
  let client = OperationClient.quiet()

  func store(_ name: String) -> OperationStore<TeamQuery.State> {
    client.store(for: TeamQuery(name: name))
  }

  @Test("A dependent wrapper that is created inside a handler of the other store is backed at once")
  func madeInHandler() {
    let made = Log<String>()
    let name = SharedQuery(NameQuery(), client: client)
    let teams = Log<SharedQuery<TeamQuery.State>>()
    let areBacked = Log<Bool>()
    let subscription = name.store?.subscribe { event in
      guard case .stateChanged(let state) = event, state.currentValue == "ann" else { return }
      let team = SharedQuery(dependingOn: name) { name in
        made.append(name)
        return TeamQuery(name: name)
      }
      areBacked.append(team.isBacked)
      teams.append(team)
    }
    name.store?.currentValue = "ann"
    #expect(areBacked.elements == [true])
    #expect(made.elements == ["ann"])
    name.store?.currentValue = "bob"
    #expect(made.elements == ["ann", "bob"])
    #expect(teams.elements.first?.store === store("bob"))
    subscription?.cancel()
  }

  @Test("A closure that accepts an optional receives the value unwrapped")
  func unwrapped() {
    let name = SharedQuery(NameQuery(), client: client)
    let copy = SharedQuery(dependingOn: name) { name in Query(path: ["copy", name]) { _ in name } }
    #expect(!copy.isBacked)
    name.store?.currentValue = "ann"
    #expect(copy.store?.path == ["copy", "ann"])
    #expect(copy.wrappedValue == nil)
  }

  @Test("The request is made when the other value arrives, and not before")
  func made() {
    let made = Log<String>()
    let name = SharedQuery(NameQuery(), client: client)
    let team = SharedQuery(dependingOn: name) { name in
      made.append(name)
      return TeamQuery(name: name)
    }
    #expect(!team.isBacked)
    #expect(team.wrappedValue == nil)
    #expect(made.elements == [])
    name.store?.currentValue = "ann"
    #expect(made.elements == ["ann"])
    #expect(team.store === store("ann"))
  }

  @Test("A new request is made when the other value changes, and only then")
  func madeAnew() async {
    let made = Log<String>()
    let name = SharedQuery(NameQuery(), client: client)
    let team = SharedQuery(dependingOn: name) { name in
      made.append(name)
      return TeamQuery(name: name)
    }
    for value in ["ann", "ann", "bob", "bob"] {
      name.store?.currentValue = value
      let task = name.store?.runTask()
      withExtendedLifetime(task) {}
    }
    name.store?.setResult(to: .failure(Refusal(reason: "no")))
    #expect(made.elements == ["ann", "bob"])
    #expect(team.store === store("bob"))
    #expect(store("ann").subscriberCount == 0)
    #expect(store("bob").subscriberCount == 1)
  }

  @Test("The wrapper is unbacked and notifies its readers when the other value is missing again")
  func left() {
    let name = SharedQuery(wrappedValue: "ann", NameQuery(), client: client)
    let team = SharedQuery(dependingOn: name) { TeamQuery(name: $0) }
    store("ann").currentValue = 3
    let value = track { _ = team.wrappedValue }
    let backed = track { _ = team.projectedValue.isBacked }
    name.store?.currentValue = nil
    #expect(team.wrappedValue == nil)
    #expect(!team.isBacked)
    #expect(value.count == 1)
    #expect(backed.count == 1)
    #expect(store("ann").subscriberCount == 0)
  }

  @Test("The closure receives the default of a wrapper with a default")
  func defaulted() {
    let name = SharedQuery(NameQuery(), default: "nobody", client: client)
    let team = SharedQuery(dependingOn: name) { TeamQuery(name: $0) }
    #expect(team.store === store("nobody"))
    name.store?.currentValue = "ann"
    #expect(team.store === store("ann"))
  }

  @Test("The client is that of the other wrapper by default")
  func clients() {
    let other = OperationClient.quiet()
    let name = SharedQuery(wrappedValue: "ann", NameQuery(), client: client)
    let here = SharedQuery(dependingOn: name) { TeamQuery(name: $0) }
    let there = SharedQuery(dependingOn: name, client: other) { TeamQuery(name: $0) }
    #expect(here.store === store("ann"))
    #expect(there.store === other.store(for: TeamQuery(name: "ann")))
  }

  @Test("A value of an earlier request is never displayed for a later one")
  func earlierRequest() async throws {
    let started = Door()
    let release = Door()
    let name = SharedQuery(wrappedValue: "ann", NameQuery(), client: client)
    let team = SharedQuery(dependingOn: name) { name in
      Query<String, any Error>(path: ["slow-team", name]) { _ in
        guard name == "ann" else { return name }
        started.open()
        await release.passed()
        return name
      }
    }
    let seen = Log<String?>()
    let ends = Door()
    let reading = Task {
      for await value in team.projectedValue.values {
        seen.append(value)
        if value == "end" { break }
      }
      ends.open()
    }
    let old = try #require(team.store)
    let run = Task { try await old.run() }
    await started.passed()
    name.store?.currentValue = "bob"
    let value = track { _ = team.wrappedValue }
    release.open()
    #expect(try await run.value == "ann")
    #expect(old.currentValue == "ann")
    #expect(team.wrappedValue == nil)
    #expect(value.count == 0)
    team.store?.currentValue = "end"
    await ends.passed()
    await reading.value
    #expect(!seen.elements.contains("ann"))
  }

  @Test("A chain of three wrappers follows the first")
  func chain() {
    let name = SharedQuery(NameQuery(), client: client)
    let team = SharedQuery(dependingOn: name) { TeamQuery(name: $0) }
    let numbers = SharedQuery(dependingOn: team) { NumberQuery(number: $0) }
    let value = track { _ = numbers.wrappedValue }
    client.store(for: NumberQuery(number: 3)).currentValue = [3]
    store("ann").currentValue = 3
    store("bob").currentValue = 4
    name.store?.currentValue = "ann"
    #expect(numbers.wrappedValue == [3])
    #expect(value.count == 1)
    name.store?.currentValue = "bob"
    #expect(numbers.store === client.store(for: NumberQuery(number: 4)))
    #expect(numbers.wrappedValue == nil)
    name.store?.currentValue = nil
    #expect(!numbers.isBacked)
  }

  @Test("The current client is that of a wrapper that a stream drives, unless one is passed")
  func streamInCurrentClient() {
    let name = client.store(for: NameQuery())
    name.currentValue = "ann"
    let teams = [nil, OperationClient.quiet()].map { other in
      OperationClient.withCurrent(client) {
        SharedQuery(dependingOn: name.values, client: other) { $0.map { TeamQuery(name: $0) } }
      }
    }
    #expect(teams.map { $0.store === store("ann") } == [true, false])
  }

  @Test("The last wrapper of a chain retains the others")
  func chainHoldsItsLinks() {
    func last() -> SharedQuery<NumberQuery.State> {
      let name = SharedQuery(NameQuery(), client: client)
      let team = SharedQuery(dependingOn: name) { TeamQuery(name: $0) }
      return SharedQuery(dependingOn: team) { NumberQuery(number: $0) }
    }
    let numbers = last()
    store("ann").currentValue = 3
    store("bob").currentValue = 4
    let name = client.store(for: NameQuery())
    for (value, number) in [("ann", 3), ("bob", 4)] {
      name.currentValue = value
      #expect(numbers.store === client.store(for: NumberQuery(number: number)))
    }
  }

  @Test("A chain ends all subscriptions when its last wrapper is released")
  func chainEnds() {
    let name = client.store(for: NameQuery())
    do {
      let first = SharedQuery(NameQuery(), client: client)
      let team = SharedQuery(dependingOn: first) { TeamQuery(name: $0) }
      let numbers = SharedQuery(dependingOn: team) { NumberQuery(number: $0) }
      name.currentValue = "ann"
      store("ann").currentValue = 3
      #expect(numbers.isBacked)
      #expect(name.subscriberCount > 0)
    }
    #expect(name.subscriberCount == 0)
    #expect(store("ann").subscriberCount == 0)
    #expect(client.store(for: NumberQuery(number: 3)).subscriberCount == 0)
  }

  @Test("A replaced wrapper notifies its readers, also if another wrapper depends on it")
  func replacedFirst() {
    var name = SharedQuery(NameQuery(), client: client)
    let team = SharedQuery(dependingOn: name) { TeamQuery(name: $0) }
    let value = track { _ = name.wrappedValue }
    name = SharedQuery(NameQuery(), client: .quiet())
    #expect(value.count == 1)
    client.store(for: NameQuery()).currentValue = "ann"
    #expect(name.wrappedValue == nil)
    #expect(team.store === store("ann"))
  }

  @Test(
    "After concurrent writes, the dependent wrapper has the request for the last value",
    arguments: 0..<20)
  func threads(round: Int) async throws {
    let name = SharedQuery(NameQuery(), client: client)
    let team = SharedQuery(dependingOn: name) { TeamQuery(name: $0) }
    await onThreads(6) { name.store?.currentValue = "name \($0)" }
    let last = try #require(name.wrappedValue)
    #expect(team.store === store(last))
    let counts = (0..<6).map { store("name \($0)").subscriberCount }
    #expect(counts.reduce(0, +) == 1)
  }

  @Test("A reader that is notified before a dependent wrapper reads it for the new value")
  func readInEarlierHandler() {
    let name = SharedQuery(NameQuery(), client: client)
    name.store?.currentValue = "ann"
    let team = Log<SharedQuery<TeamQuery.State>>()
    let bound = Log<Bool>()
    let subscription = name.store?.subscribe { event in
      guard case .stateChanged(let state) = event, let current = state.currentValue else { return }
      if let team = team.elements.first { bound.append(team.store === self.store(current)) }
    }
    let made = Log<String>()
    team.append(
      SharedQuery(dependingOn: name) { name in
        made.append(name)
        return TeamQuery(name: name)
      })
    name.store?.currentValue = "bob"
    #expect(bound.elements == [true])
    #expect(made.elements == ["ann", "bob"])
    #expect(store("bob").subscriberCount == 1 && store("ann").subscriberCount == 0)
    subscription?.cancel()
  }

  @Test("The owner of exclusive access reads the dependent wrapper of its own write")
  func readInExclusiveAccess() {
    let name = SharedQuery(NameQuery(), client: client)
    let team = SharedQuery(dependingOn: name) { TeamQuery(name: $0) }
    name.store?.currentValue = "ann"
    name.store?.withExclusiveAccess {
      name.store?.currentValue = "bob"
      #expect(team.store === store("bob") && store("bob").subscriberCount == 0)
    }
    #expect(team.store === store("bob") && store("bob").subscriberCount == 1)
  }

  @Test("A closure that reads its own wrapper reads the present binding")
  func readInClosure() {
    let name = SharedQuery(NameQuery(), client: client)
    let own = Log<SharedQuery<TeamQuery.State>>()
    let team = SharedQuery(dependingOn: name) { name in
      let present = own.elements.first?.store?.path
      return TeamQuery(name: name + (present == nil ? "" : "+"))
    }
    own.append(team)
    name.store?.currentValue = "ann"
    name.store?.currentValue = "bob"
    #expect(team.store === store("bob+"))
    own.removeAll()
  }

  @Test("The request that a closure returns replaces one that it has bound itself")
  func bindInClosure() {
    let name = SharedQuery(NameQuery(), client: client)
    let own = Log<SharedQuery<TeamQuery.State>>()
    let team = SharedQuery(dependingOn: name) { name in
      own.elements.first?.bind(to: TeamQuery(name: "own"))
      return TeamQuery(name: name)
    }
    own.append(team)
    for value in ["ann", "bob"] {
      name.store?.currentValue = value
      #expect(team.store === store(value) && store(value).subscriberCount == 1)
    }
    own.removeAll()
  }

  @Test(
    "A dependent wrapper follows after a shutdown, also in a client of its own",
    arguments: [true, false])
  func shutdown(hasOwnClient: Bool) async {
    let own = hasOwnClient ? OperationClient.quiet() : client
    let name = SharedQuery(NameQuery(), client: client)
    name.store?.currentValue = "ann"
    let team = SharedQuery(dependingOn: name, client: own) { TeamQuery(name: $0) }
    own.store(for: TeamQuery(name: "bob")).currentValue = 3
    await client.shutdown(within: .zero)
    let value = track { #expect(team.wrappedValue == nil) }
    name.store?.currentValue = "bob"
    #expect(team.wrappedValue == 3)
    #expect(value.count == 1)
    #expect(own.store(for: TeamQuery(name: "bob")).subscriberCount == 1)
  }

  @Test("A reader beside a busy writer never reads the dependent value of an older value")
  func busyWriter() async {
    for _ in 0..<20 {
      let count = 500
      let client = OperationClient.quiet()
      let stores = (0...count).map { number in
        let store = client.store(for: WrittenNumber(path: ["double", number]))
        store.currentValue = number
        return store
      }
      let number = SharedQuery(WrittenNumber(path: ["number"]), client: client)
      number.store?.currentValue = 0
      let double = SharedQuery(dependingOn: number) { (number: Int) in
        WrittenNumber(path: ["double", number])
      }
      let late = await withTaskGroup(of: Int.self) { group in
        group.addTask {
          for value in 1...count { number.store?.currentValue = value }
          return 0
        }
        group.addTask {
          var late = 0
          while let first = number.wrappedValue, let second = double.wrappedValue {
            if second < first { late += 1 }
            if first == count { break }
          }
          return late
        }
        return await group.reduce(0, +)
      }
      #expect(late == 0)
      #expect(double.store === stores[count])
    }
  }
}

/// A number that is only written.
struct WrittenNumber: QueryRequest {
  let path: OperationPath

  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int { 0 }
}
