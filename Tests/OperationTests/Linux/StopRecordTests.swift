import Testing

@testable import Operation

@Suite("StopRecord") struct StopRecordTests {
  private var record = StopRecord()
  private var last = StopRecord()

  private mutating func read() -> [ApplicationActivity] {
    defer { last = record }
    return record.activities(since: last)
  }

  @Test("A program is in the background from a stop until it is continued")
  mutating func stopped() {
    #expect(record.activity == .foreground && read() == [.foreground])
    record.stop()
    #expect(record.activity == .background && read() == [.background])
    #expect(read() == [.background])
    record.continued()
    #expect(record.activity == .foreground && read() == [.foreground])
  }

  @Test("A stop and its end that are read at once are two activities") mutating func atOnce() {
    record.stop()
    record.continued()
    #expect(read() == [.background, .foreground])
    record.stop()
    record.continued()
    record.stop()
    #expect(read() == [.background])
  }

  @Test("A stop that was not caught counts at its end, and a caught one counts once")
  mutating func uncaught() {
    record.continued()
    #expect(record.stopCount == 1 && read() == [.background, .foreground])
    record.stop()
    record.stopReturned()
    record.continued()
    #expect(record.stopCount == 2 && read() == [.background, .foreground])
    record.stop()
    record.continued()
    record.stopReturned()
    #expect(record.stopCount == 3 && read() == [.background, .foreground])
  }

  @Test("A stop without effect ends when its attempt has returned")
  mutating func returned() {
    record.stop()
    #expect(!record.isRunning && read() == [.background])
    record.stopReturned()
    #expect(record.isRunning && !record.isContinued && read() == [.foreground])
  }
}
