/// A group of related routes, so that each example keeps its routes in one file.
public protocol RouteCollection {
  /// Registers the routes of this group.
  func register(in router: inout Router)
}

/// Finds the handler of a request. Of two matching routes, the one registered first applies.
public struct Router: Sendable {
  /// Responds to a request, or throws. An `HTTPError` is sent as it is, other errors as a 500.
  public typealias Handler = @Sendable (Request) throws -> Response

  private struct Route {
    let method: String
    let pattern: RoutePattern
    let handler: Handler
  }

  private var routes: [Route] = []

  /// Creates a router with the routes of the given groups.
  public init(_ collections: any RouteCollection...) {
    for collection in collections { collection.register(in: &self) }
  }

  /// Registers a handler for `GET`, which also serves `HEAD`.
  public mutating func get(_ path: String, _ handler: @escaping Handler) {
    on("GET", path, handler)
  }

  /// Registers a handler for `POST`.
  public mutating func post(_ path: String, _ handler: @escaping Handler) {
    on("POST", path, handler)
  }

  /// Registers a handler for `DELETE`.
  public mutating func delete(_ path: String, _ handler: @escaping Handler) {
    on("DELETE", path, handler)
  }

  /// Registers a handler for any other method, for example `PATCH`.
  public mutating func on(_ method: String, _ path: String, _ handler: @escaping Handler) {
    routes.append(Route(method: method, pattern: RoutePattern(path), handler: handler))
  }

  func respond(to request: Request) -> Response {
    do {
      return try dispatch(request)
    } catch let error as HTTPError {
      return Response(error)
    } catch {
      return .status(500, "\(error)")
    }
  }

  private func dispatch(_ request: Request) throws -> Response {
    let candidates = routes.compactMap { route in
      route.pattern.match(request.segments).map { (route: route, parameters: $0) }
    }
    guard !candidates.isEmpty else {
      throw HTTPError(404, "There is nothing at \(request.path).")
    }
    let method = request.method == "HEAD" ? "GET" : request.method
    guard let match = candidates.first(where: { $0.route.method == method }) else {
      return methodNotAllowed(request, allowed: candidates.map { $0.route.method })
    }
    var request = request
    request.parameters = match.parameters
    return try match.route.handler(request)
  }

  private func methodNotAllowed(_ request: Request, allowed: [String]) -> Response {
    var response = Response.status(405, "\(request.method) is not allowed at \(request.path).")
    response.headers["Allow"] = Set(allowed).sorted().joined(separator: ", ")
    return response
  }
}

/// Matches paths such as `/posts/:id`, where a segment with a colon stands for any text.
struct RoutePattern: Sendable {
  private enum Segment {
    case literal(String)
    case parameter(String)
  }

  private let segments: [Segment]

  init(_ text: String) {
    segments = text.split(separator: "/").map { segment in
      segment.hasPrefix(":") ? .parameter(String(segment.dropFirst())) : .literal(String(segment))
    }
  }

  /// Returns the values of the parameters, or nil when the path does not match.
  func match(_ path: [String]) -> [String: String]? {
    guard path.count == segments.count else { return nil }
    var parameters: [String: String] = [:]
    for (segment, text) in zip(segments, path) {
      switch segment {
      case .literal(let expected):
        guard text == expected else { return nil }
      case .parameter(let name):
        parameters[name] = text
      }
    }
    return parameters
  }
}
