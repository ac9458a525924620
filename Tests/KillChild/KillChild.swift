import Foundation
import Glibc
import Operation
import Synchronization

/// The program that the tests of a restart kill at random moments.
///
/// It fetches a value and makes numbered changes, with a storage in the directory that is its first
/// argument. The second argument is the number of its first change, and the third one the number of changes; without
/// changes it ends when all calls of earlier programs have arrived. Its server is the test, which reads lines
/// from its output and answers each request by its number:
///
/// ```
/// loaded VALUE           a saved value was restored
/// fetch REQUEST          is answered with REQUEST VALUE
/// change REQUEST KEY N   is answered with REQUEST ok
/// making N               the program calls the mutation
/// made N                 the mutation has returned
/// done                   everything has arrived
/// ```

func printLine(_ line: String) {
  let bytes = Array("\(line)\n".utf8)
  _ = write(STDOUT_FILENO, bytes, bytes.count)
}

/// The server at the other end of input and output.
final class Server: Sendable {
  private struct Requests: Sendable {
    var last = 0
    var waiting: [Int: CheckedContinuation<String, Never>] = [:]
  }

  static let shared = Server()
  private let requests = Mutex(Requests())

  /// Starts the thread that reads the answers.
  static func start() {
    Thread.detachNewThread { shared.readAnswers() }
  }

  /// Reads answers until the input ends.
  private func readAnswers() {
    while let line = readLine() {
      let words = line.split(separator: " ", maxSplits: 1)
      let waiter = requests.withLock { $0.waiting.removeValue(forKey: Int(words[0]) ?? 0) }
      waiter?.resume(returning: String(words[1]))
    }
    exit(0)
  }

  func ask(_ name: String, _ arguments: String = "") async -> String {
    await withCheckedContinuation { continuation in
      let request = requests.withLock { requests in
        requests.last += 1
        requests.waiting[requests.last] = continuation
        return requests.last
      }
      printLine("\(name) \(request) \(arguments)")
    }
  }
}

struct Latest: QueryRequest, Hashable {
  func fetch(
    in context: OperationContext, with continuation: OperationContinuation<[String], any Error>
  ) async throws -> [String] {
    [String](repeating: await Server.shared.ask("fetch"), count: 100)
  }
}

struct Change: MutationRequest, Hashable {
  func mutate(
    with number: Int, in context: OperationContext,
    with continuation: OperationContinuation<String, any Error>
  ) async throws -> String {
    await Server.shared.ask("change", "\(context.operationCallID ?? "none") \(number)")
  }
}

@main
struct KillChild {
  static func main() async throws {
    let arguments = CommandLine.arguments
    let client = OperationClient(storage: try FileStorage(directory: arguments[1]))
    Server.start()

    let change = Change().serialized(in: "changes").persisted()
    try await client.resumeMutations { outbox in outbox.register(change) }
    let latest = client.store(for: Latest().persisted())
    for await state in latest.states where !state.isRestoring { break }
    if let value = latest.confirmedValue, latest.valueUpdateCount == 1, !latest.isLoading {
      printLine("loaded \(Set(value).count == 1 && value.count == 100 ? value[0] : "torn")")
    }

    let (first, count) = (Int(arguments[2]) ?? 0, Int(arguments[3]) ?? 0)
    let store = client.store(for: change)
    for number in first..<(first + count) {
      printLine("making \(number)")
      let made = Task { try await store.mutate(with: number) }
      try await latest.fetch()
      // Every other change is on its way together with the next fetch of the value.
      if number.isMultiple(of: 2) { Task { try? await latest.fetch() } }
      _ = try await made.value
      printLine("made \(number)")
      if number.isMultiple(of: 3) { try await client.flush() }
    }
    for await calls in client.outbox.values where calls.isEmpty { break }
    try await client.flush()
    printLine("done")
  }
}
