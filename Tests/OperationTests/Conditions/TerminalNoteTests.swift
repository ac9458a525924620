import Testing

@testable import Operation

@Suite("What the handlers of the signals note") struct TerminalNoteTests {
  private var note = TerminalNote()
  private var reader = TerminalNoteReader(start: TerminalNote())

  private mutating func read(
    terminal: ApplicationActivity = .foreground
  ) -> [ApplicationActivity] {
    reader.read(note, measured: note.isRunning ? terminal : .background)
  }

  @Test("A stop is the background until the program is continued, in front or behind")
  mutating func stopped() {
    note.stop()
    #expect(TerminalActivityObserver.measured(note) == .background)
    #expect(read() == [.background] && reader.activity == .background)
    note.continued()
    #expect(read(terminal: .background) == [.background])
    #expect(read() == [.foreground] && reader.activity == .foreground)
  }

  @Test("A stop and its end that are seen at once are both told") mutating func atOnce() {
    note.stop()
    note.continued()
    #expect(read() == [.background, .foreground])
    note.stop()
    note.continued()
    note.stop()
    #expect(read() == [.background])
  }

  @Test("A stop that nobody caught is noted by its end, one that was caught is not noted twice")
  mutating func uncaught() {
    note.continued()
    #expect(note.stopCount == 1 && read() == [.background, .foreground])
    note.stop()
    note.stopReturned()
    note.continued()
    #expect(note.stopCount == 2 && read() == [.background, .foreground])
    note.stop()
    note.continued()
    note.stopReturned()
    #expect(note.stopCount == 3 && read() == [.background, .foreground])
  }

  @Test("A stop that was not to be is over when its attempt has returned")
  mutating func returned() {
    note.stop()
    #expect(!note.isRunning && read() == [.background])
    note.stopReturned()
    #expect(note.isRunning && !note.isContinued && read() == [.foreground])
  }
}
