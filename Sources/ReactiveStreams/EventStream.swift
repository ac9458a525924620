/// A stream of events, each of which counts.
///
/// Unread elements are kept according to ``buffering``. The stream subscribes when an iterator is
/// made, and the subscription ends with the iterator. A cancelled read ends the iterator.
public struct EventStream<Element: Sendable>: AsyncSequence, Sendable {
  /// A stream never fails.
  public typealias Failure = Never

  package let source: StreamSource<Element>
  /// The policy for elements that arrive faster than the reader takes them.
  public let buffering: StreamBuffering

  package init(_ source: StreamSource<Element>, buffering: StreamBuffering) {
    self.source = source
    self.buffering = buffering.checked
  }

  /// Subscribes, and returns the iterator that reads.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reader: StreamReader(source, policy: buffering))
  }

  /// The iterator that reads an event stream.
  public struct Iterator: AsyncIteratorProtocol {
    let reader: StreamReader<Element>

    /// Waits for the next element. Returns `nil` when the stream has ended or the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      await reader.next()
    }

    /// Waits for the next element. Returns `nil` when the stream has ended or the task is cancelled.
    nonisolated(nonsending) public mutating func next() async -> Element? { await reader.next() }
  }
}

extension EventStream {
  /// Returns a stream of the elements of an operator, with the buffering of this one.
  package func stream<Output>(of source: StreamSource<Output>) -> EventStream<Output> {
    EventStream<Output>(source, buffering: buffering)
  }

  /// Transforms every element.
  ///
  /// - Parameter transform: Returns the new element. It is called for each iterator, on a thread
  ///   that sends, with no lock held, and must be quick.
  public func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> EventStream<Output> { stream(of: source.map(transform)) }

  /// Transforms every element, and drops those for which `transform` returns `nil`.
  ///
  /// - Parameter transform: Returns the new element, or `nil`. It is called for each iterator, on a
  ///   thread that sends, with no lock held, and must be quick.
  public func compactMap<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output?
  ) -> EventStream<Output> { stream(of: source.compactMap(transform)) }

  /// Drops the elements for which `isIncluded` returns `false`.
  ///
  /// - Parameter isIncluded: Returns whether to keep an element. It is called for each iterator, on
  ///   a thread that sends, with no lock held, and must be quick.
  public func filter(
    _ isIncluded: @escaping @Sendable (Element) -> Bool
  ) -> EventStream { stream(of: source.filter(isIncluded)) }

  /// Combines every element with the result before it, and sends each result.
  ///
  /// Each iterator begins with `initialResult`, which is not sent itself.
  ///
  /// - Parameters:
  ///   - initialResult: The result before the first element.
  ///   - nextResult: Returns the next result for the one before and an element.
  public func scan<Output: Sendable>(
    _ initialResult: Output, _ nextResult: @escaping @Sendable (Output, Element) -> Output
  ) -> EventStream<Output> { stream(of: source.scan(initialResult, nextResult)) }

  /// Drops each element that equals the one before it.
  public func removeDuplicates(
    by areEqual: @escaping @Sendable (Element, Element) -> Bool
  ) -> EventStream { stream(of: source.removeDuplicates(by: areEqual)) }

  /// Drops each element that equals the one before it.
  public func removeDuplicates() -> Self where Element: Equatable { removeDuplicates(by: ==) }

  /// Follows the stream that `transform` returns for the newest element, and cancels the one before.
  ///
  /// Elements of the earlier stream that are still queued are dropped. Each one that the reader has
  /// received counts, and is kept until it is read.
  ///
  /// - Parameter transform: Returns the stream for an element. It is called on a thread that sends,
  ///   with no lock held, and must be quick.
  public func flatMapLatest<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> EventStream<Output>
  ) -> EventStream<Output> { stream(of: source.flatMapLatest { transform($0).source }) }

  /// Pairs the newest element of this stream with the newest element of another.
  ///
  /// A pair is delivered whenever one of them changes, once both have an element.
  public func combineLatest<Other: Sendable>(
    _ other: EventStream<Other>
  ) -> EventStream<(Element, Other)> { stream(of: source.combineLatest(other.source)) }

  /// Sends the elements of this stream and of another one, in the order in which they arrive.
  ///
  /// The stream ends when both have ended. It has the ``buffering`` of this stream.
  public func merge(_ other: EventStream) -> EventStream { stream(of: source.merge(other.source)) }

  /// Combines the newest elements of several streams into arrays, in the order of the streams.
  ///
  /// An array is sent whenever one of the streams changes, once all have an element. The stream
  /// ends when all have ended, or when one has ended without an element. Without streams it sends
  /// one empty array and ends.
  ///
  /// - Parameters:
  ///   - streams: The streams, each of which is subscribed to once for each iterator.
  ///   - buffering: The policy for arrays that the reader has not taken; by default, all are kept.
  public static func combineLatest(
    _ streams: [EventStream], buffering: StreamBuffering = .all
  ) -> EventStream<[Element]> {
    EventStream<[Element]>(StreamSource.combineLatest(streams.map(\.source)), buffering: buffering)
  }
}
