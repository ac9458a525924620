/// A stream of things that happen, each of which counts.
///
/// What is unread is kept as the stream's buffering says. The stream subscribes when an iterator
/// is made, and the iterator's life is the subscription's. A cancelled read ends the iterator.
public struct EventStream<Element: Sendable>: AsyncSequence, Sendable {
  /// A stream never fails.
  public typealias Failure = Never

  package let source: StreamSource<Element>
  /// What the stream does with elements that come faster than its reader takes them.
  public let buffering: StreamBuffering

  package init(_ source: StreamSource<Element>, buffering: StreamBuffering) {
    self.source = source
    self.buffering = buffering.checked
  }

  /// Subscribes, and gives the reader's end.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reader: StreamReader(source, policy: buffering))
  }

  /// The reader's end of an event stream.
  public struct Iterator: AsyncIteratorProtocol {
    let reader: StreamReader<Element>

    /// Waits for the next element; `nil` when the stream has ended or the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      await reader.next()
    }

    /// Waits for the next element; `nil` when the stream has ended or the task is cancelled.
    nonisolated(nonsending) public mutating func next() async -> Element? {
      await reader.next()
    }
  }
}

extension EventStream {
  /// Changes every element.
  public func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> EventStream<Output> {
    EventStream<Output>(source.map(transform), buffering: buffering)
  }

  /// Changes every element, and leaves out those that become `nil`.
  public func compactMap<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output?
  ) -> EventStream<Output> {
    EventStream<Output>(source.compactMap(transform), buffering: buffering)
  }

  /// Leaves out what is equal to the element before it.
  public func removeDuplicates(
    by areEqual: @escaping @Sendable (Element, Element) -> Bool
  ) -> EventStream {
    EventStream(source.removeDuplicates(by: areEqual), buffering: buffering)
  }

  /// Follows the stream that the newest element gives, and leaves the one before it.
  ///
  /// What the earlier stream gave and still waits for delivery is dropped with it.
  public func flatMapLatest<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> EventStream<Output>
  ) -> EventStream<Output> {
    EventStream<Output>(source.flatMapLatest { transform($0).source }, buffering: buffering)
  }

  /// Pairs the newest element of this stream with the newest of another, whenever one changes and
  /// both are there.
  public func combineLatest<Other: Sendable>(
    _ other: EventStream<Other>
  ) -> EventStream<(Element, Other)> {
    EventStream<(Element, Other)>(source.combineLatest(other.source), buffering: buffering)
  }
}

extension EventStream where Element: Equatable {
  /// Leaves out what is equal to the element before it.
  public func removeDuplicates() -> EventStream {
    removeDuplicates(by: ==)
  }
}
