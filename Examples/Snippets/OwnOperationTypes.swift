// The code of the guide OwnOperationTypes: the build compiles it, and a test compares it with the
// guide.

// snippet: the protocol of the requests
import Foundation
import Operation

protocol TileRequest<Key, Tile>: StatefulOperationRequest
where Value == [Key: Tile], Failure == any Error, State == TileState<Key, Tile> {
  associatedtype Key: Hashable & Sendable
  associatedtype Tile: Sendable
  associatedtype Value = [Key: Tile]
  associatedtype Failure = any Error
  associatedtype State = TileState<Key, Tile>

  /// The tiles that a run without a key of its own is for.
  var overview: [Key] { get }

  nonisolated(nonsending) func fetchTile(
    _ key: Key, in context: OperationContext
  ) async throws -> Tile
}
// end

// snippet: the purpose of a run
private enum TileKey<Key: Hashable & Sendable>: OperationContext.Key {
  static var defaultValue: Key? { nil }
}

extension OperationContext {
  func tile<Key: Hashable & Sendable>(_ type: Key.Type) -> Key? {
    self[TileKey<Key>.self]
  }

  func asking<Key: Hashable & Sendable>(for key: Key) -> OperationContext {
    var context = self
    context[TileKey<Key>.self] = key
    return context
  }
}
// end

// snippet: the run
extension TileRequest {
  func run(
    isolation: isolated (any Actor)?, in context: OperationContext,
    with continuation: OperationContinuation<Value, any Error>
  ) async throws -> Value {
    if let key = context.tile(Key.self) {
      return [key: try await fetchTile(key, in: context)]
    }
    var tiles: Value = [:]
    for key in overview {
      tiles[key] = try await fetchTile(key, in: context)
      continuation.yield(tiles)
    }
    return tiles
  }
}
// end

// snippet: the state
struct TileState<Key: Hashable & Sendable, Tile: Sendable>: ValueInitializedState {
  typealias StateValue = [Key: Tile]
  typealias OperationValue = [Key: Tile]
  typealias StatusValue = [Key: Tile]
  typealias Task = OperationTask<[Key: Tile], any Error>

  private(set) var currentValue: [Key: Tile]
  let initialValue: [Key: Tile]
  private(set) var valueUpdateCount = 0
  private(set) var valueLastUpdatedAt: Date?
  private(set) var error: (any Error)?
  private(set) var errorUpdateCount = 0
  private(set) var errorLastUpdatedAt: Date?
  private var tasks = IdentifiedArrayOf<Task>()

  static var emptyValue: [Key: Tile] { [:] }

  init(initialValue: [Key: Tile]) {
    currentValue = initialValue
    self.initialValue = initialValue
  }

  var isLoading: Bool { !tasks.isEmpty }

  func isLoading(_ key: Key) -> Bool { tasks.contains { $0.context.tile(Key.self) == key } }
}
// end

// snippet: scheduling
extension TileState {
  mutating func scheduleFetchTask(_ task: inout Task) {
    task.schedule(after: tasks.filter { $0.context.tile(Key.self) == nil })
    tasks.append(task)
  }

  mutating func finishFetchTask(_ task: Task) {
    tasks.remove(id: task.id)
  }
}
// end

// snippet: results
extension TileState {
  mutating func update(with result: Result<[Key: Tile], any Error>, for task: Task) {
    let merged = result.map { tiles in currentValue.merging(tiles) { _, new in new } }
    update(with: merged, using: task.context)
  }

  mutating func update(with result: Result<[Key: Tile], any Error>, using context: OperationContext)
  {
    let now = context.operationClock.now()
    switch result {
    case .success(let tiles):
      currentValue = tiles
      valueUpdateCount += 1
      valueLastUpdatedAt = now
      error = nil
    case .failure(let failure):
      error = failure
      errorUpdateCount += 1
      errorLastUpdatedAt = now
    }
  }
}
// end

// snippet: reset
extension TileState {
  mutating func reset(using context: OperationContext) -> ResetEffect {
    defer { self = TileState(initialValue: initialValue) }
    return ResetEffect(tasksToCancel: tasks)
  }
}
// end

// snippet: optimistic edits
extension TileState: EditableState {
  mutating func show(_ tiles: [Key: Tile], updates: Int) {
    currentValue = tiles
    valueUpdateCount += updates
  }
}
// end

// snippet: methods on the store
extension OperationStore {
  @discardableResult
  nonisolated(nonsending) func fetchTile<Key, Tile>(
    _ key: Key, using context: OperationContext? = nil
  ) async throws -> Tile? where State == TileState<Key, Tile> {
    try await run(using: (context ?? self.context).asking(for: key))[key]
  }
}
// end

// snippet: use it
struct Square: Hashable, Sendable {
  let column: Int
  let row: Int
}

struct SoilMap: TileRequest, Hashable {
  let overview = [Square(column: 0, row: 0), Square(column: 1, row: 0)]

  func fetchTile(_ square: Square, in context: OperationContext) async throws -> String {
    square.column.isMultiple(of: 2) ? "clay" : "sand"
  }
}

func soil(at square: Square, in client: OperationClient) async throws -> String? {
  let store = client.store(for: SoilMap().retry(limit: 2).stale(after: .seconds(3_600)))
  if let soil = store.currentValue[square] { return soil }
  return try await store.fetchTile(square)
}
// end

// snippet: modifiers of your own
struct Counted<Base: OperationRequest>: OperationModifier {
  let count: @Sendable () -> Void

  func run(
    isolation: isolated (any Actor)?, in context: OperationContext, using base: Base,
    with continuation: OperationContinuation<Base.Value, Base.Failure>
  ) async throws(Base.Failure) -> Base.Value {
    count()
    return try await base.run(isolation: isolation, in: context, with: continuation)
  }
}

extension OperationRequest {
  func counted(
    _ count: @escaping @Sendable () -> Void
  ) -> ModifiedOperation<Self, Counted<Self>> {
    modifier(Counted(count: count))
  }
}
// end
