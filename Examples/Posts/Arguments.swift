import Foundation

/// The task that the command line requests.
enum Arguments: Equatable {
  static let usage = "usage: posts [--api URL | --offline-demo]"

  static let helpText = """
    \(usage)

    Reads a small blog over HTTP, and shows what its queries do.

      --api URL   read from this server, and not from one that the program starts itself;
                  it needs GET /posts, /posts/ID, /posts/ID/comments and /authors/ID
      --offline-demo
                  write posts while there is no connection, to a server of the program
      --help      print this and exit
    """

  /// Read the blog at a URL, or without one, that of a server in this process.
  case read(api: URL?)
  /// Write to a blog whose connection is lost and restored.
  case offlineDemo
  case help

  /// Reads the arguments that follow the name of the program.
  init(_ arguments: some Sequence<String>) throws(BadArguments) {
    var api: URL?
    var isOffline = false
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
      case "--offline-demo":
        isOffline = true
      default:
        throw BadArguments("'\(argument)' is not an argument of this program")
      }
    }
    if isOffline, api != nil { throw BadArguments("--offline-demo has a server of its own") }
    self = isOffline ? .offlineDemo : .read(api: api)
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
