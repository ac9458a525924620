/// A dictionary of which a copy shares all but what is changed: a change costs as much as a bucket
/// and a list of the buckets, whoever else holds the entries.
///
/// A few entries are a plain dictionary. It grows by one bucket at a time, as W. Litwin's linear
/// hashing does, so that no change costs as much as all entries.
struct ChunkedDictionary<Key: Hashable, Value> {
  /// The entries by the hashes of their keys.
  var buckets: [[Key: Value]]
  var count = 0

  /// How many entries a bucket has at most, on the average.
  static var bucketSize: Int { 128 }

  init(minimumCapacity: Int) {
    let buckets = Swift.max(1, (minimumCapacity + Self.bucketSize - 1) / Self.bucketSize)
    let capacity = minimumCapacity / buckets
    self.buckets = (0..<buckets).map { _ in Dictionary(minimumCapacity: capacity) }
  }

  /// Whether by far fewer entries are there than the buckets were made for.
  var isSparse: Bool { buckets.count > count / (Self.bucketSize / 8) + 1 }

  /// The largest power of two that is no more than the number of buckets.
  var level: Int { 1 << (Int.bitWidth - 1 - buckets.count.leadingZeroBitCount) }

  func bucket(of key: Key) -> Int {
    if buckets.count == 1 { return 0 }
    // Those that have not been split yet hold what would be in the ones behind the last.
    let bucket = key.hashValue & (2 * level - 1)
    return bucket < buckets.count ? bucket : bucket - level
  }

  subscript(key: Key) -> Value? {
    get { buckets[bucket(of: key)][key] }
    set {
      let bucket = bucket(of: key)
      let old = buckets[bucket].count
      buckets[bucket][key] = newValue
      count += buckets[bucket].count - old
      if count > buckets.count * Self.bucketSize { split() }
    }
  }

  /// Adds an entry, unless there is one with its key, whose value is given; a key is hashed once for
  /// both.
  mutating func insert(_ value: Value, for key: Key) -> Value? {
    let bucket = bucket(of: key)
    let old = buckets[bucket].count
    func read(_ entry: inout Value) -> Value { entry }
    let present = read(&buckets[bucket][key, default: value])
    if buckets[bucket].count == old { return present }
    count += 1
    if count > buckets.count * Self.bucketSize { split() }
    return nil
  }

  /// Makes two buckets of the first one that has not been split in this round.
  mutating func split() {
    let first = buckets.count - level
    let entries = buckets[first]
    buckets[first] = Dictionary(minimumCapacity: Self.bucketSize)
    buckets.append(Dictionary(minimumCapacity: Self.bucketSize))
    for (key, value) in entries { buckets[bucket(of: key)][key] = value }
  }
}

extension ChunkedDictionary: Sendable where Key: Sendable, Value: Sendable {}
