/// All cases, in the order in which they are measured: memory first, while the heap is small.
enum Catalogue {
  static let all: [Benchmark] =
    memory + stores + states + subscribers + runs + pages + graphs + streams + wrappers
}
