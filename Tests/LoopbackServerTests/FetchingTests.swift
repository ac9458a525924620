import Fetching
import Foundation
import FoundationNetworking
import LoopbackServer
import Testing

@Suite struct FetchingTests {
  @Test("A request gets its answer, whatever the status is") func answers() async throws {
    try await withServer { server async throws in
      for (path, status) in [("posts/1", 200), ("posts/100000", 404)] {
        let request = URLRequest(url: server.baseURL.appending(path: path))
        let (data, response) = try await URLSession.shared.answer(to: request)
        #expect((response as? HTTPURLResponse)?.statusCode == status)
        #expect(!data.isEmpty)
      }
    }
  }

  @Test("A transfer is not cancelled with its caller", .timeLimit(.minutes(5)))
  func cancelledCallers() async throws {
    try await withServer { server async throws in
      let request = URLRequest(url: server.baseURL.appending(path: "posts/1"))
      for _ in 1...50 {
        let call = Task { try await URLSession.shared.answer(to: request).0 }
        call.cancel()
        #expect(try await !call.value.isEmpty)
      }
    }
  }
}
