/// All cases, in the order in which they are measured.
enum Catalogue {
  static let all: [Benchmark] =
    memory + stores + states + subscribers + runs + pending + pages + graphs + streams + wrappers
    + inspectors
    + persistence
}
