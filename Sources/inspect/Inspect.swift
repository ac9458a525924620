import Foundation
import Glibc

/// Shows what the queries of a running program do, in a terminal, as text or in a browser.
@main
enum Inspect {
  static func main() {
    StandardStreams.open()
    do throws(InspectError) {
      let arguments = try Arguments(CommandLine.arguments.dropFirst())
      exit(try run(arguments))
    } catch {
      StandardStreams.error("inspect: \(error)\n")
      exit(EXIT_FAILURE)
    }
  }

  /// Does what the arguments ask for, and returns the exit status.
  private static func run(_ arguments: Arguments) throws(InspectError) -> Int32 {
    var arguments = arguments
    if arguments.form == .help {
      StandardStreams.output(Arguments.helpText + "\n")
      return EXIT_SUCCESS
    }
    if arguments.form == .list {
      let found = Programs.ofUser.all(matching: arguments.target)
      return found.programs.isEmpty
        ? reportNone(arguments.target, .ofUser, found) : list(found)
    }
    var demo: Demo?
    if arguments.isDemo {
      let started = try Demo()
      demo = started
      arguments.target = "\(started.pid)"
    }
    defer { demo?.end() }
    let target = Target(arguments.target, programs: .ofUser)
    if let demo { return try show(try demo.connect(to: target), arguments, target) }
    guard let link = try connect(to: target, arguments) else { return EXIT_FAILURE }
    return try show(link, arguments, target)
  }

  private static var style: OutputStyle {
    OutputStyle(
      environment: ProcessInfo.processInfo.environment, isTerminal: isatty(STDOUT_FILENO) == 1)
  }

  private static func show(
    _ link: Link, _ arguments: Arguments, _ target: Target
  ) throws(InspectError) -> Int32 {
    let plain = PlainSession(arguments: arguments, target: target, style: style)
    switch arguments.form {
    case .automatic where TerminalDevice.isUsable:
      let session = try TerminalSession(target: target, waits: arguments.waits, style: style)
      return session.run(link).map { 128 + $0 } ?? EXIT_SUCCESS
    case .follow: try plain.follow(link)
    case .svg: try plain.drawing(link.connection)
    case .web:
      // Each page has a connection of its own.
      link.connection.close()
      try WebServer(arguments: arguments, target: target, socket: link.socket).run()
    default: try plain.once(link.connection)
    }
    return EXIT_SUCCESS
  }

  /// Connects to the program that the user means; writes why not, and returns `nil` otherwise.
  private static func connect(
    to target: Target, _ arguments: Arguments
  ) throws(InspectError) -> Link? {
    switch target.kind {
    case .socket(let path):
      if arguments.waits { return wait(for: target, after: nil) }
      return Link(path: path, connection: try ProgramConnection(path: path))
    case .any, .program:
      let found = target.programs.all(matching: arguments.target)
      let programs = found.programs
      if programs.isEmpty, arguments.waits {
        StandardStreams.error("inspect: waiting for \(arguments.target ?? "a program")\n")
        return wait(for: target, after: nil)
      }
      guard programs.count == 1, let program = programs.first else {
        if programs.isEmpty {
          _ = reportNone(arguments.target, target.programs, found)
        } else {
          list(found, writes: StandardStreams.error)
        }
        return nil
      }
      return program.link
    }
  }

  /// Waits until a program has started, and connects to it.
  static func wait(for target: Target, after last: UsedSocket?) -> Link {
    // A program that refuses the connection is not asked without a pause.
    if last != nil { usleep(250_000) }
    while true {
      if let link = target.connect(after: last) { return link }
      usleep(250_000)
    }
  }

  /// Writes that no program is meant by a target, and which others there are. Returns the exit status.
  private static func reportNone(
    _ target: String?, _ programs: Programs, _ found: Answers
  ) -> Int32 {
    let all = target == nil ? found : programs.all()
    if all.programs.isEmpty, all.refusals.isEmpty {
      StandardStreams.error(
        """
        inspect: no program can be inspected
        A program opens its inspector with `try client.serveInspector()`.
        To see one that is part of this package: swift run inspect --demo

        """)
      return EXIT_FAILURE
    }
    if let target, !all.programs.isEmpty {
      StandardStreams.error("inspect: No program is called \(target.printable); there are:\n")
    }
    list(all, writes: StandardStreams.error)
    return EXIT_FAILURE
  }

  /// Writes the programs that can be inspected, and why others refuse. Returns the exit status.
  @discardableResult
  private static func list(
    _ found: Answers, writes: (String) -> Void = StandardStreams.output
  ) -> Int32 {
    for refusal in found.refusals { StandardStreams.error("inspect: \(refusal)\n") }
    let programs = found.programs
    if programs.isEmpty { return EXIT_FAILURE }
    let plain = PlainText(style: style)
    let width = programs.map { plain.title($0.hello).columns }.max() ?? 0
    var text = "\("PROGRAM".fit(max(width, 7)))      PID  UP        SOCKET\n"
    for program in programs {
      let hello = program.hello
      let up = clockDuration(hello.now - hello.started)
      text += plain.title(hello).fit(max(width, 7))
      text += " \("\(hello.pid)".fit(8, isRight: true))  \(up.fit(8))  "
      text += program.link.path.printable + "\n"
    }
    writes(text)
    return EXIT_SUCCESS
  }
}
