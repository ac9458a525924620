final class WebServer {
  init(arguments: Arguments, target: Target, path: String) throws(InspectError) {}
  func run() throws(InspectError) {}
}
