/// A stream of the states of something: it starts with the state that is there, and the newest
/// one wins.
///
/// ```swift
/// for await posts in store.values {
///   print(posts?.count ?? 0)
/// }
/// ```
///
/// A reader holds one pending element and never a queue: a reader that sleeps costs nothing, and
/// wakes to the newest element. The stream subscribes when an iterator is made, and the iterator's
/// life is the subscription's. A cancelled read ends the iterator.
///
/// Operators run on the thread that commits an element, before the reader sees it; keep them
/// short.
public struct StateStream<Element: Sendable>: AsyncSequence, Sendable {
  /// A stream never fails.
  public typealias Failure = Never

  package let source: StreamSource<Element>
  let areEqual: (@Sendable (Element, Element) -> Bool)?

  package init(
    _ source: StreamSource<Element>,
    areEqual: (@Sendable (Element, Element) -> Bool)? = nil
  ) {
    self.source = areEqual.map(source.removeDuplicates(by:)) ?? source
    self.areEqual = areEqual
  }

  /// Subscribes, and gives the reader's end.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reader: StreamReader(source, policy: .newest(1)), areEqual: areEqual)
  }

  /// The reader's end of a state stream.
  public struct Iterator: AsyncIteratorProtocol {
    let reader: StreamReader<Element>
    let areEqual: (@Sendable (Element, Element) -> Bool)?
    var last: Element?

    init(
      reader: StreamReader<Element>, areEqual: (@Sendable (Element, Element) -> Bool)?
    ) {
      self.reader = reader
      self.areEqual = areEqual
    }

    /// Waits for the next element; `nil` when the stream has ended or the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      while let element = await reader.next() {
        // A reader that missed a change and its way back would see the same element twice.
        if let areEqual, let last, areEqual(last, element) { continue }
        if areEqual != nil { last = element }
        return element
      }
      return nil
    }

    /// Waits for the next element; `nil` when the stream has ended or the task is cancelled.
    nonisolated(nonsending) public mutating func next() async -> Element? {
      await next(isolation: #isolation)
    }
  }
}

extension StateStream {
  /// A stream that gives one element, and does not end.
  public static func just(_ element: Element) -> StateStream {
    StateStream(.just(element))
  }

  /// Changes every element.
  public func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> StateStream<Output> {
    StateStream<Output>(source.map(transform))
  }

  /// Changes every element, and leaves out those that become `nil`.
  public func compactMap<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output?
  ) -> StateStream<Output> {
    StateStream<Output>(source.compactMap(transform))
  }

  /// Leaves out what is equal to the element before it.
  public func removeDuplicates(
    by areEqual: @escaping @Sendable (Element, Element) -> Bool
  ) -> StateStream {
    StateStream(source, areEqual: areEqual)
  }

  /// Follows the stream that the newest element gives, and leaves the one before it.
  ///
  /// What the earlier stream gave and still waits for delivery is dropped with it; an element that
  /// has reached the reader stays until a newer one takes its place.
  public func flatMapLatest<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> StateStream<Output>
  ) -> StateStream<Output> {
    StateStream<Output>(source.flatMapLatest { transform($0).source })
  }

  /// Pairs the newest element of this stream with the newest of another, whenever one changes and
  /// both are there.
  public func combineLatest<Other: Sendable>(
    _ other: StateStream<Other>
  ) -> StateStream<(Element, Other)> {
    StateStream<(Element, Other)>(source.combineLatest(other.source))
  }
}

extension StateStream where Element: Equatable {
  /// Leaves out what is equal to the element before it.
  public func removeDuplicates() -> StateStream {
    removeDuplicates(by: ==)
  }
}
