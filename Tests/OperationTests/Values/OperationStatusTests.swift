import Operation
import Testing

@Suite("OperationStatus") struct OperationStatusTests {
  typealias Status = OperationStatus<Int, Refused>

  @Test(
    "Each status has the right value of each Boolean property",
    arguments: [
      (Status.idle, [true, false, false, false, false, false]),
      (.loading, [false, true, false, false, false, false]),
      (.paused, [false, false, true, false, false, false]),
      (.result(.success(1)), [false, false, false, true, false, true]),
      (.result(.failure(Refused())), [false, false, false, false, true, true]),
    ])
  func questions(status: Status, answers: [Bool]) {
    #expect(
      answers == [
        status.isIdle, status.isLoading, status.isPaused, status.isSuccess, status.isFailure,
        status.isFinished,
      ])
  }

  @Test("A status with a result returns it, and no other status does")
  func result() {
    #expect(Status.result(.success(4)).result == .success(4))
    #expect(Status.result(.failure(Refused(attempt: 2))).result == .failure(Refused(attempt: 2)))
    #expect(Status.idle.result == nil)
    #expect(Status.loading.result == nil)
    #expect(Status.paused.result == nil)
  }

  @Test("Statuses with equal results are equal and have equal hashes")
  func equality() {
    #expect(Status.result(.success(1)) == .result(.success(1)))
    #expect(Status.result(.success(1)) != .result(.success(2)))
    #expect(Status.result(.success(1)) != .loading)
    #expect(Set([Status.idle, .idle, .paused]).count == 2)
  }
}
