import Glibc
import Testing

@testable import Operation

@Suite("DescriptorPoll") struct DescriptorPollTests {
  @Test("A thread that cannot poll ends, and releases its descriptors")
  func failure() async throws {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    weak var released: FileDescriptor?
    var thread: DescriptorPoll?
    do {
      let (descriptor, _) = try FileDescriptor.pair()
      released = descriptor
      // With the one that ends the thread, there are more than a process may have.
      let many = Array(repeating: descriptor, count: Int(clamping: limit.rlim_cur))
      thread = try DescriptorPoll(many, for: Int32(POLLIN)) { _, _ in true }
    }
    try #require(await eventually { released == nil })
    thread?.end()
  }
}
