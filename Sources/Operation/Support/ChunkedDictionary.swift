/// A dictionary of which a copy shares all but what is changed: a change costs as much as a bucket
/// and a list of the buckets, whoever else holds the entries.
///
/// A few entries are a plain dictionary.
@usableFromInline struct ChunkedDictionary<Key: Hashable, Value> {
  /// The entries by the hashes of their keys; a power of two of buckets.
  @usableFromInline var buckets: [[Key: Value]]
  @usableFromInline var count = 0

  /// How many entries a bucket has at most, on the average.
  @inlinable static var bucketSize: Int { 128 }

  @inlinable init(minimumCapacity: Int) {
    var buckets = 1
    while buckets * Self.bucketSize < minimumCapacity { buckets *= 2 }
    let capacity = minimumCapacity / buckets
    self.buckets = (0..<buckets).map { _ in Dictionary(minimumCapacity: capacity) }
  }

  @inlinable func bucket(of key: Key) -> Int {
    buckets.count == 1 ? 0 : key.hashValue & (buckets.count - 1)
  }

  @inlinable subscript(key: Key) -> Value? {
    get { buckets[bucket(of: key)][key] }
    set {
      let bucket = bucket(of: key)
      let old = buckets[bucket].count
      buckets[bucket][key] = newValue
      count += buckets[bucket].count - old
      if count > buckets.count * Self.bucketSize { grow() }
    }
  }

  /// Makes twice as many buckets.
  @inlinable mutating func grow() {
    var larger = Self(minimumCapacity: 2 * buckets.count * Self.bucketSize)
    for bucket in buckets {
      for (key, value) in bucket { larger.buckets[larger.bucket(of: key)][key] = value }
    }
    larger.count = count
    self = larger
  }
}

extension ChunkedDictionary: Sendable where Key: Sendable, Value: Sendable {}
