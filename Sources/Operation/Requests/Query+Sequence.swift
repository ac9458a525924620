/// The moment at which the elements of a sequence replace the cached value of a query that is
/// fetched again.
public enum SequenceReplacement: Sendable, Hashable {
  /// The first element replaces it, and each later one changes the value.
  case atFirstElement
  /// The value is replaced when the sequence has ended.
  case atEnd
}

/// An error of a query whose value is the newest element of a sequence.
public enum SequenceQueryError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The sequence ended without an element.
  case noElement

  /// A sentence that describes the error.
  public var description: String { "The sequence of the query ended without an element." }
}

extension Query where Failure == any Error {
  /// Creates a query whose value is the newest element of a sequence, such as of a socket.
  ///
  /// ```swift
  /// let price = Query(path: ["price", symbol], newestOf: { _ in exchange.prices(of: symbol) })
  ///   .retry(limit: 10)
  /// ```
  ///
  /// The run lasts as long as the sequence, and the store displays each element. The observers of the
  /// store hold the run: when the last one ends, its task is cancelled, and with it the sequence. A caller
  /// of `fetch()` waits for the end, and receives the last element. If the sequence throws, the request's
  /// retries and backoff connect again; the number of retries is that of the whole run.
  ///
  /// - Parameters:
  ///   - path: The path under which a client holds the store of the query.
  ///   - replacement: When the cached value of an earlier run is replaced; by default, by the first
  ///     element.
  ///   - elements: Returns the sequence. It is called for each attempt, on no actor in a store, with no
  ///     lock held. A sequence that ends without an element throws ``SequenceQueryError/noElement``.
  public init<Elements: AsyncSequence & SendableMetatype>(
    path: OperationPath, replacingValue replacement: SequenceReplacement = .atFirstElement,
    newestOf elements: @escaping @Sendable (OperationContext) async throws -> Elements
  ) where Elements.Element == Value, Elements.AsyncIterator: SendableMetatype {
    self.init(path: path) { context, continuation in
      var newest: Value?
      for try await element in try await elements(context) {
        newest = element
        if replacement == .atFirstElement { continuation.yield(element) }
      }
      try Task.checkCancellation()
      guard let newest else { throw SequenceQueryError.noElement }
      return newest
    }
  }

  /// Creates a query whose value is made of all elements of a sequence by a closure.
  ///
  /// Each run, and each retry, begins with `initial`. Otherwise it is like a query of the newest element.
  /// A sequence that ends without an element gives `initial`.
  ///
  /// - Parameters:
  ///   - path: The path under which a client holds the store of the query.
  ///   - initial: The value before the first element.
  ///   - replacement: When the cached value of an earlier run is replaced; by default, by the first
  ///     element.
  ///   - elements: Returns the sequence. It is called for each attempt, on no actor in a store, with no
  ///     lock held.
  ///   - update: Adds an element to the value. It is called in the task of the run, with no lock held.
  public init<Elements: AsyncSequence & SendableMetatype>(
    path: OperationPath, reducingInto initial: Value,
    replacingValue replacement: SequenceReplacement = .atFirstElement,
    elements: @escaping @Sendable (OperationContext) async throws -> Elements,
    update: @escaping @Sendable (inout Value, Elements.Element) -> Void
  ) where Elements.AsyncIterator: SendableMetatype {
    self.init(path: path) { context, continuation in
      var value = initial
      for try await element in try await elements(context) {
        update(&value, element)
        if replacement == .atFirstElement { continuation.yield(value) }
      }
      try Task.checkCancellation()
      return value
    }
  }

  /// Creates a query whose value is the list of all elements of a sequence, such as the lines of a file.
  ///
  /// It is like a query that is made of all elements by a closure, with an empty list at the beginning.
  ///
  /// - Parameters:
  ///   - path: The path under which a client holds the store of the query.
  ///   - replacement: When the cached value of an earlier run is replaced; by default, by the first
  ///     element.
  ///   - elements: Returns the sequence. It is called for each attempt, on no actor in a store, with no
  ///     lock held.
  public init<Elements: AsyncSequence & SendableMetatype>(
    path: OperationPath, replacingValue replacement: SequenceReplacement = .atFirstElement,
    appending elements: @escaping @Sendable (OperationContext) async throws -> Elements
  ) where Value == [Elements.Element], Elements.AsyncIterator: SendableMetatype {
    self.init(
      path: path, reducingInto: [], replacingValue: replacement, elements: elements,
      update: { $0.append($1) })
  }
}
