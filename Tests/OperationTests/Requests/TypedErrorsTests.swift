import Operation
import Testing

/// The test is that this compiles: no failure is cast between the request and its reader.
@Suite("Typed errors") struct TypedErrorsTests {
  private func withoutStore(_ script: Script) async -> Refused? {
    do throws(Refused) {
      _ = try await TypedQuery(script: script).run()
      _ = try await TypedQuery(script: script).retry(limit: 0) { $0.attempt > 0 }.run()
      _ = try await PlainRequest(script: script).delay(for: .zero).deduplicated().neverStale().run()
      return nil
    } catch {
      return error
    }
  }

  private func modified(
    _ script: Script
  ) -> some QueryRequest<Int, QueryState<Int, Refused>> {
    TypedQuery(script: script).retry(limit: 0).backoff(.noBackoff).deduplicated()
      .stale(after: .seconds(1)).staleWhen { $0.error?.attempt == 1 }.neverStale()
      .delay(for: .zero).clock(ManualClock()).handleEvents { _ in }.logDuration("") { _ in }
      .map { $0 }
  }

  private func inStore(_ script: Script) async -> [Refused?] {
    let store = OperationClient(defaults: .testing).store(for: modified(script))
    var thrown: [Refused?] = []
    do throws(Refused) { try await store.run() } catch { thrown.append(error) }
    do throws(Refused) { try await store.fetch() } catch { thrown.append(error) }
    let task = store.runTask()
    do throws(Refused) { try await task.runIfNeeded() } catch { thrown.append(error) }
    do throws(Refused) { _ = try await task.map { $0 }.runIfNeeded() } catch {
      thrown.append(error)
    }
    if case .failure(let error) = task.finishedResult { thrown.append(error) }
    if case .result(.failure(let error)) = store.status { thrown.append(error) }
    thrown.append(store.error)
    thrown.append(store.state.error)
    return thrown
  }

  @Test("A failure keeps its type without a store")
  func plain() async {
    #expect(await withoutStore(Script()) == nil)
    #expect(await withoutStore(Script(failures: 1)) == Refused(attempt: 1))
  }

  @Test("A failure keeps its type through modifiers, runs, tasks, state and status")
  func store() async {
    let attempts = await inStore(Script(failures: 9)).map { $0?.attempt }
    #expect(attempts == [1, 2, 3, 3, 3, 3, 3, 3])
  }
}

extension QueryRequest {
  /// Applies a rule that reads only the state.
  fileprivate func staleWhen(
    _ isStale: @escaping @Sendable (State) -> Bool
  ) -> ModifiedOperation<Self, SettingsModifier<Self>> {
    staleWhen { state, _ in isStale(state) }
  }
}
