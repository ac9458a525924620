import Foundation
import Testing

@testable import Operation

/// What tells the rules of two requests apart that are passed to one store.
@Suite struct RuleParameterTests {
  private typealias Number = QueryState<Int, any Error>

  /// A value that cannot be compared.
  private struct PlainCondition: OperationRunSpecification {
    let value: Bool

    func isSatisfied(in context: OperationContext) -> Bool { value }
    func subscribe(
      in context: OperationContext, onChange: @escaping @Sendable () -> Void
    ) -> OperationSubscription { .empty }
  }

  private let client = OperationClient(defaults: .testing, clock: ManualClock())
  private let query = Query<Int, any Error>(path: ["query"]) { _ in 1 }

  private func key<Request: StatefulOperationRequest>(
    _ request: Request
  ) -> RequestRules<Number>.Key? where Request.State == Number {
    client.store(for: query).rules(of: request)?.key
  }

  /// Records an issue unless the rules of the requests differ, and those of each are equal to its own.
  private func expectDifferent<Request: StatefulOperationRequest>(
    _ name: Comment, _ requests: Request..., sourceLocation: SourceLocation = #_sourceLocation
  ) where Request.State == Number {
    for (index, first) in requests.enumerated() {
      for (other, second) in requests.enumerated() {
        #expect(
          (key(first) == key(second)) == (index == other), name, sourceLocation: sourceLocation)
      }
    }
  }

  @Test("Requests with other parameters of a modifier have other rules") func parameters() {
    let times = [Duration.seconds(1), .seconds(2)]
    expectDifferent("stale", query.stale(after: times[0]), query.stale(after: times[1]))
    expectDifferent(
      "stale if error", query.staleIfError(for: times[0]), query.staleIfError(for: times[1]))
    expectDifferent("delay", query.delay(for: times[0]), query.delay(for: times[1]))
    expectDifferent("timeout", query.timeout(after: times[0]), query.timeout(after: times[1]))
    expectDifferent("retry", query.retry(limit: 1), query.retry(limit: 2))
    expectDifferent("network mode", query.networkMode(.always), query.networkMode(.online))
    expectDifferent("clock", query.clock(ManualClock()), query.clock(ManualClock()))
    expectDifferent("clock", query.clock(SystemClock()), query.clock(ManualClock()))
    expectDifferent(
      "task", query.automaticRuns(named: "a"), query.automaticRuns(named: "b"),
      query.automaticRuns(named: "a", priority: .low),
      query.automaticRuns(named: "a", priority: .high))
  }

  @Test("Requests with other conditions have other rules") func conditions() {
    let broadcasts = [Broadcast<Bool>(), Broadcast<Bool>()]
    expectDifferent(
      "reruns", query.rerunOnChange(of: .connected), query.rerunOnChange(of: .foreground),
      query.rerunOnChange(of: .connected, evenIfFresh: true))
    expectDifferent(
      "broadcasts", query.rerunOnChange(of: .latest(of: broadcasts[0])),
      query.rerunOnChange(of: .latest(of: broadcasts[1])))
    let (stream, _) = AsyncStream.makeStream(of: Bool.self)
    expectDifferent(
      "sequences", query.rerunOnChange(of: .following(stream)),
      query.rerunOnChange(of: .following(stream, initially: true)))
    expectDifferent(
      "retries", query.retries(onlyWhile: .connected), query.retries(onlyWhile: .foreground))
    expectDifferent(
      "automatic", query.enableAutomaticRunning(onlyWhen: .always),
      query.enableAutomaticRunning(onlyWhen: .never))
    expectDifferent(
      "combined", query.retries(onlyWhile: .connected && .always),
      query.retries(onlyWhile: .connected || .always),
      query.retries(onlyWhile: .connected && .never),
      query.retries(onlyWhile: .foreground && .always), query.retries(onlyWhile: !.always),
      query.retries(onlyWhile: !.never))
  }

  @Test("Polls with other parameters have other rules") func polls() {
    let interval = Duration.seconds(1)
    expectDifferent(
      "polls", query.rerun(every: interval), query.rerun(every: .seconds(2)),
      query.rerun(every: interval, while: .connected),
      query.rerun(every: interval, inBackground: true), query.rerun(every: { _ in interval }),
      query.rerun(while: { _ in true }, every: interval))
  }

  @Test("Requests with other modifiers, or with more of them, have other rules")
  func modifiers() {
    expectDifferent(
      "names", query.neverStale(), query.manual(), query.stale(after: .seconds(1)))
    #expect(key(query.neverStale()) != key(query.neverStale().networkMode(.always)))
    #expect(key(query.networkMode(.always)) != key(query.retry(limit: 1)))
  }

  @Test("What cannot be compared makes no difference") func incomparable() {
    let values = [true, false]
    let rules = values.map { value in
      key(
        query.staleWhen { _, _ in value }.retries(onlyWhile: PlainCondition(value: value))
          .retry(limit: 1) { _ in value })
    }
    #expect(rules[0] != nil && rules[0] == rules[1])
  }

  @Test("Lengths of pages and histories are parameters, too") func lengths() {
    let pages = Paginated<Int, Int>(path: ["pages"], initialPageId: 0, nextPageId: { _, _ in nil })
    {
      _, _ in 1
    }
    let mutation = Mutation<Int, Int>(path: ["mutation"]) { number, _ in number }
    let (pageStore, callStore) = (client.store(for: pages), client.store(for: mutation))
    let limits = [1, 1, 2].map { pageStore.rules(of: pages.maxPages($0))?.key }
    let lengths = [1, 1, 2].map { callStore.rules(of: mutation.maxHistory(length: $0))?.key }
    #expect(limits[0] == limits[1] && limits[0] != limits[2])
    #expect(lengths[0] == lengths[1] && lengths[0] != lengths[2])
  }
}
