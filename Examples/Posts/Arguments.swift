import Foundation

/// The task that the command line requests.
enum Arguments: Equatable {
  static let usage = "usage: posts [--api URL | --offline-demo | --busy] [--state DIRECTORY]"

  static let helpText = """
    \(usage)

    Reads a small blog over HTTP, and shows what its queries do.

      --api URL   read from this server, and not from one that the program starts itself;
                  it needs GET /posts, /posts/ID, /posts/ID/comments and /authors/ID
      --offline-demo
                  write posts while there is no connection, to a server of the program
      --busy      read and write without a pause until standard input ends, for the inspector
      --state DIRECTORY
                  keep what was read there, and start with it the next time; with
                  --offline-demo, keep what was written there, and survive a kill
      --part PART URL DIRECTORY
                  be one of the programs, write or send, of --offline-demo with --state
      --help      print this and exit
    """

  /// Read the blog at a URL, or without one, that of a server in this process. With a directory,
  /// begin with the saved values.
  case read(api: URL?, state: String? = nil)
  /// Write to a blog whose connection is lost and restored; with a directory, in programs that end.
  case offlineDemo(state: String? = nil)
  /// Be one of these programs.
  case part(RestartDemo.Part, api: URL, state: String)
  /// Keep a blog busy that the inspector can show.
  case busy
  case help

  /// Reads the arguments that follow the name of the program.
  init(_ arguments: some Sequence<String>) throws(BadArguments) {
    var api: URL?
    var state: String?
    var isOffline = false
    var isBusy = false
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      switch argument {
      case "--help", "-h":
        self = .help
        return
      case "--api" where api == nil:
        guard let text = rest.next() else { throw BadArguments("--api needs a URL") }
        api = try Self.url(text)
      case "--api":
        throw BadArguments("--api is there twice")
      case "--state" where state == nil:
        guard let directory = rest.next(), !directory.isEmpty else {
          throw BadArguments("--state needs a directory")
        }
        state = directory
      case "--state":
        throw BadArguments("--state is there twice")
      case "--offline-demo":
        isOffline = true
      case "--busy":
        isBusy = true
      case "--part":
        self = try Self.part(rest.next(), rest.next(), rest.next())
        return
      default:
        throw BadArguments("'\(argument)' is not an argument of this program")
      }
    }
    if isOffline, api != nil { throw BadArguments("--offline-demo has a server of its own") }
    if isBusy, isOffline || api != nil || state != nil {
      throw BadArguments("--busy has a server of its own, and keeps nothing")
    }
    if isBusy {
      self = .busy
      return
    }
    self = isOffline ? .offlineDemo(state: state) : .read(api: api, state: state)
  }

  private static func part(
    _ name: String?, _ api: String?, _ state: String?
  ) throws(BadArguments) -> Arguments {
    guard let part = name.flatMap(RestartDemo.Part.init), let api, let state else {
      throw BadArguments("--part needs 'write' or 'send', a URL and a directory")
    }
    return .part(part, api: try url(api), state: state)
  }

  private static func url(_ text: String) throws(BadArguments) -> URL {
    guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()),
      let host = url.host(), !host.isEmpty
    else { throw BadArguments("'\(text)' is not an http or https URL") }
    return url
  }
}

/// An error in a command line.
struct BadArguments: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
