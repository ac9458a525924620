/// A stream of states that starts with the current state and keeps only the newest one.
///
/// ```swift
/// for await posts in store.values {
///   print(posts?.count ?? 0)
/// }
/// ```
///
/// A reader holds one pending element and never a queue. A suspended reader costs nothing, and
/// resumes with the newest element. The stream subscribes when an iterator is made, and the
/// subscription ends with the iterator. A cancelled read ends the iterator.
///
/// Operators run on the thread that commits an element, before the reader receives it. They must be
/// short.
public struct StateStream<Element: Sendable>: AsyncSequence, Sendable {
  /// A stream never fails.
  public typealias Failure = Never

  package let source: StreamSource<Element>
  private let areEqual: (@Sendable (Element, Element) -> Bool)?

  package init(
    _ source: StreamSource<Element>,
    areEqual: (@Sendable (Element, Element) -> Bool)? = nil
  ) {
    self.source = areEqual.map { source.removeDuplicates(by: $0) } ?? source
    self.areEqual = areEqual
  }

  /// Subscribes, and returns the iterator that reads.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reader: StreamReader(source, policy: .newest(1)), areEqual: areEqual)
  }

  /// The iterator that reads a state stream.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let reader: StreamReader<Element>
    fileprivate let areEqual: (@Sendable (Element, Element) -> Bool)?
    fileprivate var last: Element?

    /// Waits for the next element. Returns `nil` when the stream has ended or the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      while let element = await reader.next(dropsOutdated: true) {
        // A reader that skipped a change and its undoing would receive the same element twice.
        if let areEqual, let last, areEqual(last, element) { continue }
        if areEqual != nil { last = element }
        return element
      }
      return nil
    }

    /// Waits for the next element. Returns `nil` when the stream has ended or the task is cancelled.
    nonisolated(nonsending) public mutating func next() async -> Element? {
      await next(isolation: #isolation)
    }
  }
}

extension StateStream {
  /// Returns a stream of one element that does not end.
  public static func just(_ element: Element) -> StateStream { StateStream(.just(element)) }

  /// Transforms every element.
  ///
  /// - Parameter transform: Returns the new element. It is called for each iterator, on a thread
  ///   that sends, with no lock held, and must be quick.
  public func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> StateStream<Output> { StateStream<Output>(source.map(transform)) }

  /// Transforms every element, and drops those for which `transform` returns `nil`.
  ///
  /// - Parameter transform: Returns the new element, or `nil`. It is called for each iterator, on a
  ///   thread that sends, with no lock held, and must be quick.
  public func compactMap<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output?
  ) -> StateStream<Output> { StateStream<Output>(source.compactMap(transform)) }

  /// Drops the elements for which `isIncluded` returns `false`.
  ///
  /// - Parameter isIncluded: Returns whether to keep an element. It is called for each iterator, on
  ///   a thread that sends, with no lock held, and must be quick.
  public func filter(
    _ isIncluded: @escaping @Sendable (Element) -> Bool
  ) -> StateStream { StateStream(source.filter(isIncluded)) }

  /// Combines every element with the result before it, and sends each result.
  ///
  /// Each iterator begins with `initialResult`, which is not sent itself. A slow reader receives
  /// the newest result, which includes the elements that it did not read. States that a store
  /// replaces before it has notified its subscribers do not count; its `states(buffering:)` has
  /// all of them.
  ///
  /// - Parameters:
  ///   - initialResult: The result before the first element.
  ///   - nextResult: Returns the next result for the one before and an element.
  public func scan<Output: Sendable>(
    _ initialResult: Output, _ nextResult: @escaping @Sendable (Output, Element) -> Output
  ) -> StateStream<Output> { StateStream<Output>(source.scan(initialResult, nextResult)) }

  /// Drops each element that equals the one before it.
  public func removeDuplicates(
    by areEqual: @escaping @Sendable (Element, Element) -> Bool
  ) -> StateStream { StateStream(source, areEqual: areEqual) }

  /// Drops each element that equals the one before it.
  public func removeDuplicates() -> Self where Element: Equatable { removeDuplicates(by: ==) }

  /// Follows the stream that `transform` returns for the newest element, and cancels the one before.
  ///
  /// Elements of the earlier stream that the reader has not taken are dropped.
  ///
  /// - Parameter transform: Returns the stream for an element. It is called on a thread that sends,
  ///   with no lock held, and must be quick.
  public func flatMapLatest<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> StateStream<Output>
  ) -> StateStream<Output> { StateStream<Output>(source.flatMapLatest { transform($0).source }) }

  /// Pairs the newest element of this stream with the newest element of another.
  ///
  /// A pair is delivered whenever one of them changes, once both have an element. While one of them follows
  /// a new stream of `flatMapLatest` that has sent nothing yet, there is no pair to read.
  public func combineLatest<Other: Sendable>(
    _ other: StateStream<Other>
  ) -> StateStream<(Element, Other)> { .init(source.combineLatest(other.source)) }

  /// Sends the elements of this stream and of another one, in the order in which they arrive.
  ///
  /// It begins with the current element of this stream, followed by that of the other. The reader
  /// receives the newest element of both. When `flatMapLatest` leaves a stream, an element of it that was
  /// not received is dropped, and the element that it had replaced does not come back. The stream ends when
  /// both have ended.
  public func merge(_ other: StateStream) -> StateStream { StateStream(source.merge(other.source)) }

  /// Combines the newest elements of several streams into arrays, in the order of the streams.
  ///
  /// An array is sent whenever one of the streams changes, once all have an element. The stream
  /// ends when all have ended, or when one has ended without an element. Without streams it sends
  /// one empty array and ends.
  ///
  /// - Parameter streams: The streams, each of which is subscribed to once for each iterator.
  public static func combineLatest(_ streams: [StateStream]) -> StateStream<[Element]> {
    StateStream<[Element]>(StreamSource.combineLatest(streams.map(\.source)))
  }
}
