/// What the command line asks for.
struct Arguments: Equatable, Sendable {
  static let usage = "usage: inspect [PROGRAM | PID | SOCKET] [options]"

  static let helpText = """
    \(usage)

    Shows what the queries of a running program do. The program opens its inspector with
    `try client.serveInspector()`. Without an argument, inspect lists the programs of this user
    that can be inspected, and connects if there is only one. PROGRAM is the name of a program, or
    the one that it has given with `serveInspector(named:)`.

    Forms:
      (none)      a screen in a terminal; the same as --once in a pipe
      --web       a page on this machine's loopback address, which is printed
      --once      print the stores and exit
      --follow    print the stores, and then each event
      --list      print the programs and exit
      --svg       print the screen once, as an image

    Options:
      --json      print JSON: with --follow one message a line
      --wait      wait for the program's start, and for its next start after its end
      --port N    the port of --web; by default a free one
      --demo      start a program of its own to inspect
      --help      print this and exit

    Press ? in the terminal form for its keys. NO_COLOR turns colours off.
    """

  enum Form: Equatable, Sendable {
    /// A screen in a terminal, plain lines elsewhere.
    case automatic
    case web, once, follow, list, svg, help
  }

  var form = Form.automatic
  /// The name or the process identifier of a program, the name of a client, or the path of a socket.
  var target: String?
  var isJSON = false
  var waits = false
  var isDemo = false
  var port: UInt16 = 0

  /// Reads the arguments that follow the name of the program.
  init(_ arguments: some Sequence<String>) throws(InspectError) {
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      switch argument {
      case "--help", "-h":
        form = .help
        return
      case "--web": try choose(.web, argument)
      case "--once": try choose(.once, argument)
      case "--follow": try choose(.follow, argument)
      case "--list": try choose(.list, argument)
      case "--svg": try choose(.svg, argument)
      case "--json": isJSON = true
      case "--wait": waits = true
      case "--demo": isDemo = true
      case "--port":
        guard let text = rest.next(), let port = UInt16(text) else {
          throw InspectError("--port needs a number up to 65535")
        }
        self.port = port
      case _ where argument.hasPrefix("-") || argument.isEmpty:
        throw InspectError("'\(argument)' is not an option of this program")
      case _ where target != nil: throw InspectError("there is more than one program to inspect")
      default: target = argument
      }
    }
    if isJSON, form == .automatic { form = .once }
    if isJSON, [.web, .list, .svg].contains(form) {
      throw InspectError("--json goes with --once and --follow")
    }
    if form == .list, waits || isDemo {
      throw InspectError("--list goes with neither --wait nor --demo")
    }
    if isDemo, target != nil { throw InspectError("--demo has a program of its own") }
  }

  private mutating func choose(_ form: Form, _ argument: String) throws(InspectError) {
    guard self.form == .automatic || self.form == form else {
      throw InspectError("\(argument) does not go with another form")
    }
    self.form = form
  }
}
