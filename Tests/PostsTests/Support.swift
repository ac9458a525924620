import Foundation
import LoopbackServer
import SharingOperation
import Synchronization

@testable import posts

/// The address of no server. The system never assigns its port. The port of a stopped server may be
/// assigned to the next one, which another test starts.
let absentServer = "http://127.0.0.1:1"

/// A blog on a server of the test, its client, and the reports of the queries.
struct Blog: Sendable {
  let server: LoopbackServer
  let client: OperationClient
  let clock = ManualClock()
  private let reported = Lines()

  /// Starts a server without latency.
  init(_ behaviour: ServerBehaviour = ServerBehaviour(latency: .zero)) throws {
    server = LoopbackServer(router: Router(BlogRoutes(BlogData(seed: 5))), behaviour: behaviour)
    try server.start()
    var context = OperationContext()
    context.blog = BlogAPI(url: server.baseURL)
    context.report = { [reported] in reported.add($0) }
    client = OperationClient(clock: clock, context: context)
  }

  var reports: [String] { reported.all }

  /// Waits until a retry sleeps, and advances the clock to it.
  func letRetry() async {
    await clock.sleepers(atLeast: 1)
    await clock.advance(by: .seconds(1))
  }
}

/// Lines that any thread may append to.
final class Lines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }

  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
