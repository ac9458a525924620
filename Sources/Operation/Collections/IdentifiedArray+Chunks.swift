/// How an array keeps its elements: a few as a plain array, and many in chunks, so that a copy shares
/// all but what is changed. A change at one of the ends costs as much as a chunk and a list of the
/// chunks, whoever else holds the elements.
extension IdentifiedArray {
  /// What there is beside the tail, where there are many elements.
  struct Rest {
    /// How many elements are before the tail.
    var frontCount = 0
    /// The elements at the beginning, of which there is a chunk at most; the first one is the last
    /// here, as none of the others has to move where it goes, or another comes before it.
    var head: [Element] = []
    /// The chunks between both ends, each of them full.
    var chunks: [[Element]] = []
    /// The positions by identifier, as counted from the origin.
    var positions: ChunkedDictionary<ID, Int>
    /// What a position is when it is noted as zero: it moves with the first element, so that not
    /// all are noted anew when one comes before them, or goes.
    var origin = 0

    init(minimumCapacity: Int) {
      positions = ChunkedDictionary(minimumCapacity: minimumCapacity)
    }
  }

  /// How many elements are in a full chunk, as a power of two.
  static var chunkShift: Int { 6 }
  static var chunkSize: Int { 1 << chunkShift }

  /// How many elements are before the tail.
  var frontCount: Int { rest.isNone ? 0 : rest.storage![0].frontCount }

  /// The element at a position, in its place; another that is set must have the same identifier.
  subscript(inPlace index: Int) -> Element {
    get { read(at: index) { copy $0 } }
    _modify {
      if index >= frontCount {
        yield &tail[index - frontCount]
      } else {
        let position = index - rest.content.head.count
        if position < 0 {
          yield &rest.content.head[~position]
        } else {
          yield &rest.content.chunks[position >> Self.chunkShift][position & (Self.chunkSize - 1)]
        }
      }
    }
  }

  /// Looks at the element at a position, without a copy of it: where it can be in one of several
  /// places, the subscript makes one.
  func read<Output>(
    at index: Int, _ body: (borrowing Element) -> Output
  ) -> Output {
    // Of a span, as the subscript of an array copies what it gives.
    if index >= frontCount { return body(tail.span[index - frontCount]) }
    let position = index - rest.storage![0].head.count
    if position < 0 { return body(rest.storage![0].head[~position]) }
    return body(
      rest.storage![0].chunks[position >> Self.chunkShift][position & (Self.chunkSize - 1)])
  }

  /// Whether all elements satisfy a predicate, for which none is copied.
  func allSatisfyInPlace(
    _ predicate: (borrowing Element) -> Bool
  ) -> Bool {
    for index in indices where !read(at: index, predicate) { return false }
    return true
  }

  /// Puts an element behind all.
  mutating func putLast(_ element: consuming Element) {
    if tail.count == Self.chunkSize { makeRoom() }
    tail.append(element)
  }

  /// Puts an element before a position, which must be one of the array or its end.
  mutating func put(_ element: consuming Element, at index: Int) {
    if index == count { return putLast(element) }
    makeRoom()
    if frontCount == 0 || index > frontCount {
      return tail.insert(element, at: index - frontCount)
    }
    let headCount = rest.content.head.count
    if index <= headCount {
      rest.content.frontCount += 1
      return rest.content.head.insert(element, at: headCount - index)
    }
    let position = index - headCount
    let chunk = position >> Self.chunkShift
    var carried = element
    // The last one of each chunk goes to the next.
    for next in chunk..<rest.content.chunks.count {
      let place = next == chunk ? position & (Self.chunkSize - 1) : 0
      // First, as one more would take another place in memory.
      let last = rest.content.chunks[next].removeLast()
      rest.content.chunks[next].insert(carried, at: place)
      carried = last
    }
    tail.insert(carried, at: 0)
  }

  /// Takes out the element at a position, which must be one of the array.
  mutating func take(at index: Int) -> Element {
    openEnds(at: index)
    if index >= frontCount { return tail.remove(at: index - frontCount) }
    let headCount = rest.content.head.count
    if index < headCount {
      rest.content.frontCount -= 1
      if index == 0 { return rest.content.head.removeLast() }
      return rest.content.head.remove(at: headCount - 1 - index)
    }
    let position = index - headCount
    let chunk = position >> Self.chunkShift
    let count = rest.content.chunks.count
    let taken = rest.content.chunks[chunk].remove(at: position & (Self.chunkSize - 1))
    // The first one of each chunk comes to the one before.
    for next in chunk + 1...count {
      let carried = next < count ? rest.content.chunks[next].removeFirst() : tail.removeFirst()
      rest.content.chunks[next - 1].append(carried)
    }
    return taken
  }

  /// Makes chunks of ends that are full, and new ends that need not move before they are.
  mutating func makeRoom() {
    if frontCount > 0, rest.content.head.count == Self.chunkSize {
      rest.content.chunks.insert(Self.turned(&rest.content.head), at: 0)
      rest.content.head.reserveCapacity(Self.chunkSize)
    }
    if tail.count == Self.chunkSize {
      rest.content.chunks.append(tail)
      rest.content.frontCount += Self.chunkSize
      tail = []
      tail.reserveCapacity(Self.chunkSize)
    }
  }

  /// Makes ends of the outermost chunks, so that one can be taken out at `index`.
  mutating func openEnds(at index: Int) {
    if frontCount == 0 || rest.content.chunks.isEmpty { return }
    if rest.content.head.isEmpty, index < Self.chunkSize {
      var chunk = rest.content.chunks.removeFirst()
      rest.content.head = Self.turned(&chunk)
    } else if tail.isEmpty {
      tail = rest.content.chunks.removeLast()
      rest.content.frontCount -= Self.chunkSize
    }
  }

  /// The elements of a chunk the other way round, which are moved out of it and not copied.
  static func turned(_ chunk: inout [Element]) -> [Element] {
    var turned: [Element] = []
    turned.reserveCapacity(chunkSize)
    while let element = chunk.popLast() { turned.append(element) }
    chunk = []
    return turned
  }

  /// Tells whether both have equal elements in the same order; chunks that both share are not
  /// looked at.
  func hasElements(equalTo other: Self) -> Bool where Element: Equatable {
    guard count == other.count else { return false }
    let (own, others) = (front, other.front)
    guard own.head.count == others.head.count, tail.count == other.tail.count else {
      return elementsEqual(other)
    }
    return tail == other.tail && own.chunks == others.chunks && own.head == others.head
  }

  private var front: (head: [Element], chunks: [[Element]]) {
    rest.isNone ? ([], []) : (rest.content.head, rest.content.chunks)
  }
}

extension IdentifiedArray.Rest: Sendable where ID: Sendable, Element: Sendable {}
