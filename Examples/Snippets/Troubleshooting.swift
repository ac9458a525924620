// The code of the guide Troubleshooting: the build compiles it, and a test compares it with the
// guide.

// snippet: troubleshooting
import Observation
import SharingOperation

struct HeadlineQuery: SimpleQueryRequest, Hashable {
  let id: Int

  func fetch(in context: OperationContext) async throws -> String { "Headline \(id)" }
}

enum SensorError: Error {
  case outOfReach
}

struct SensorQuery: SimpleQueryRequest, Hashable {
  func fetch(in context: OperationContext) async throws(SensorError) -> Double {
    throw .outOfReach
  }
}

struct DeleteHeadline: SimpleMutationRequest, Hashable {
  func mutate(with id: Int, in context: OperationContext) async throws {}
}

struct RenameHeadline: SimpleMutationRequest, Hashable {
  func mutate(with title: String, in context: OperationContext) async throws -> Int { title.count }
}
// end

// snippet: invalid redeclaration of synthesized property
@Observable
final class HeadlineModel {
  @ObservationIgnored @SharedQuery(HeadlineQuery(id: 1)) var post
}
// end

// snippet: some return type of another declaration
func renaming() -> some StatefulOperationRequest<Int, RenameHeadline.State> {
  RenameHeadline().retry(limit: 2)
}

final class RenameModel {
  @SharedQuery(renaming()) var length
}
// end

// snippet: instance method register requires that  conform to mutationrequest
struct SendOrder: SimpleMutationRequest, Hashable {
  func mutate(with order: String, in context: OperationContext) async throws {}
}

func sendOrder() -> some MutationRequest<String, Void>
  & StatefulOperationRequest<Void, SendOrder.State>
{
  SendOrder().networkMode(.online).persisted()
}

final class OrderModel {
  @SharedQuery(sendOrder()) var sending: Void?

  func send(_ order: String) async throws { try await $sending.mutate(with: order) }
}

func resumeOrders(of client: OperationClient) async throws {
  try await client.resumeMutations { outbox in outbox.register(sendOrder()) }
}
// end

// snippet: requires the types  be equivalent
func headlineCount() -> some QueryRequest<Int, QueryState<Int, any Error>> {
  Query(path: ["headline-count"]) { _ in 1 }
}
// end

// snippet: does not conform to protocol statefuloperationrequest
struct CommentCountQuery: SimpleQueryRequest {
  let headline: Int

  var path: OperationPath { ["headlines", headline, "comment-count"] }

  func fetch(in context: OperationContext) async throws -> Int { 0 }
}
// end

// snippet: does not conform to protocol queryrequest
struct SlowCountQuery: QueryRequest, Hashable {
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<Int, any Error>
  ) async throws -> Int {
    continuation.yield(0)
    return 1
  }
}
// end

// snippet: missing argument label with
func rename(_ title: String, in client: OperationClient) async throws -> Int {
  try await client.store(for: RenameHeadline()).mutate(with: title)
}
// end

// snippet: thrown expression type  cannot be converted to error type
func measuredLevel(in client: OperationClient) async -> Double? {
  do {
    return try await client.fetch(SensorQuery().timeout(after: .seconds(5)))
  } catch SensorError.outOfReach {
    return nil
  } catch is OperationTimeoutError {
    return nil
  } catch {
    return nil
  }
}
// end

// snippet: inferred to have type optional
final class DeletionModel {
  @SharedQuery(DeleteHeadline()) var deletion: Void?

  var isDeleted: Bool { deletion != nil }
}
// end

// snippet: cannot assign to property
func correct(_ model: HeadlineModel) {
  model.$post.withLock { $0 = "Corrected" }
}
// end

// snippet: cannot use instance member  within property initializer
final class ChosenHeadlineModel {
  @SharedQuery<HeadlineQuery.State> var headline

  init(id: Int) { _headline = SharedQuery(HeadlineQuery(id: id)) }
}
// end

// snippet: stored property of a Sendable class is mutable
final class HeadlineCache: Sendable {
  private let headline = SharedQuery(HeadlineQuery(id: 1))

  var title: String { headline.wrappedValue ?? "no headline" }
}
// end
