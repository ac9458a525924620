/// A dictionary whose copies share everything that has not been changed since.
///
/// The entries are in small buckets, which are compared one by one. The number of buckets changes by
/// one at a time, as in W. Litwin's linear hashing (1980), and they are in a ``PersistentArray``. So
/// the cost of a change does not grow with the number of entries, whatever other copies exist.
struct PersistentDictionary<Key: Hashable, Value> {
  struct Entry {
    let hash: Int
    let key: Key
    let value: Value
  }

  /// The number of entries.
  private(set) var count = 0
  /// The buckets by the last bits of the hashes, in slots from zero on. There is always one.
  private(set) var buckets = PersistentArray<[Entry]>()

  /// The greatest number of entries in a bucket on average.
  static var bucketSize: Int { 12 }

  init() { buckets.append([]) }

  /// The value of a key. Setting `nil` removes the entry.
  subscript(key: Key) -> Value? {
    get {
      let hash = key.hashValue
      return buckets[bucket(of: hash)].first { $0.hash == hash && $0.key == key }?.value
    }
    set {
      let hash = key.hashValue
      count += buckets.update(at: bucket(of: hash)) { entries in
        let oldCount = entries.count
        entries.removeAll { $0.hash == hash && $0.key == key }
        if let newValue { entries.append(Entry(hash: hash, key: key, value: newValue)) }
        return entries.count - oldCount
      }
      if count > buckets.count * Self.bucketSize { split() }
      if buckets.count > 1, count < buckets.count * Self.bucketSize / 4 { merge() }
    }
  }

  /// The greatest power of two that is not greater than the number of buckets.
  private var level: Int { 1 << (Int.bitWidth - 1 - buckets.count.leadingZeroBitCount) }

  /// Returns the slot of the bucket for a hash.
  private func bucket(of hash: Int) -> Int {
    let bucket = hash & (2 * level - 1)
    // The bucket that this one is split from, as long as it does not exist.
    return bucket < buckets.count ? bucket : bucket - level
  }

  /// Adds a bucket, and moves the entries that belong there from the one that had them.
  private mutating func split() {
    let (old, new) = (buckets.count - level, buckets.count)
    let bits = 2 * level - 1
    let moved = buckets.update(at: old) { entries in
      let firstMoved = entries.partition { $0.hash & bits == new }
      defer { entries.removeSubrange(firstMoved...) }
      return Array(entries[firstMoved...])
    }
    buckets.append(moved)
  }

  /// Removes the last bucket, and moves its entries to the one that it was split from.
  private mutating func merge() {
    let entries = buckets.remove(at: buckets.count - 1)
    buckets.update(at: buckets.count - level) { $0 += entries }
  }
}

extension PersistentDictionary: Sendable where Key: Sendable, Value: Sendable {}
extension PersistentDictionary.Entry: Sendable where Key: Sendable, Value: Sendable {}
