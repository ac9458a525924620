import Operation
import SharingOperation

extension StormWorker {
  /// Uses requests that a storage, sequences, a network or other requests take part in.
  mutating func useSources() {
    let (client, requests, id) = (storm.client, storm.requests, number(0..<storm.size))
    switch number(0..<17) {
    case 0..<4: useSaved()
    case 4: storm.network.set(number(0..<3) == 0 ? .disconnected : .connected)
    case 5, 6: requests.news.send(id)
    case 7: observe(requests.newest(id % 5))
    case 8: observe(requests.frequent(id % 20))
    case 9: observe(requests.plain(id % 20))
    case 10: observe(requests.mapped(id))
    case 11: spawn { try await client.fetch(requests.mapped(id)) }
    case 12: spawn { try await client.fetch(requests.query(id), restarting: true) }
    case 13: spawn { try await client.fetch(requests.frequent(id % 20)) }
    case 14:
      client.withStores(matching: ["query", id % 10], of: StormRequests.State.self) { stores in
        for store in stores.prefix(3) { store.currentValue?.edits.append(id) }
      }
    case 15: _ = client.snapshot()
    default:
      if storm.isShuttingDown { spawn { await client.shutdown(within: .milliseconds(id * 10)) } }
    }
  }

  mutating func saved() -> (store: Store, request: some QueryRequest<Tagged, StormRequests.State>) {
    let request = storm.requests.saved(number(0..<10))
    let store = storm.client.store(for: request)
    storm.trace(store, at: store.path)
    return (store, request)
  }

  private mutating func useSaved() {
    let (client, (store, request)) = (storm.client, saved())
    switch number(0..<8) {
    case 0: store.currentValue = Tagged(edits: [number(0..<100)])
    case 1: client.reset(request)
    case 2: client.clearStore(with: request.path)
    case 3: storm.storage.delay = .milliseconds(number(0..<3) * 400)
    case 4: spawn { try await client.flush() }
    default: spawn { try await client.fetch(request) }
    }
  }

  /// Observes a request, until it has some states.
  private mutating func observe<Request: StatefulOperationRequest>(_ request: Request)
  where Request.State: ValueInitializedState {
    read(number(1..<6), of: SharedQuery(request, client: storm.client).states)
  }
}
