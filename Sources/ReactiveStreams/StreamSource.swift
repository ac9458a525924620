/// A notification of a stream to its subscribers.
package enum StreamSignal<Element: Sendable>: Sendable {
  case element(Element)
  case finished

  func map<Output: Sendable>(_ transform: (Element) -> Output) -> StreamSignal<Output> {
    switch self {
    case .element(let element): .element(transform(element))
    case .finished: .finished
    }
  }
}

/// The source of a stream: a function that subscribes a handler.
///
/// A source calls its handler with one signal after the other, never with two at the same time. Each
/// subscription is independent. Operators are functions between sources, and need no task.
package struct StreamSource<Element: Sendable>: Sendable {
  package typealias Handler = @Sendable (StreamSignal<Element>) -> Void

  package let subscribe: @Sendable (@escaping Handler) -> OperationSubscription

  package init(subscribe: @escaping @Sendable (@escaping Handler) -> OperationSubscription) {
    self.subscribe = subscribe
  }

  /// Returns a source that sends one element to each subscriber, and does not end.
  package static func just(_ element: Element) -> StreamSource {
    StreamSource { handler in
      handler(.element(element))
      return .empty
    }
  }
}

extension StreamSource {
  package func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> StreamSource<Output> {
    StreamSource<Output> { handler in subscribe { handler($0.map(transform)) } }
  }

  package func compactMap<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output?
  ) -> StreamSource<Output> {
    StreamSource<Output> { handler in
      subscribe { signal in
        switch signal {
        case .element(let element): transform(element).map { handler(.element($0)) }
        case .finished: handler(.finished)
        }
      }
    }
  }

  package func removeDuplicates(
    by areEqual: @escaping @Sendable (Element, Element) -> Bool
  ) -> StreamSource {
    StreamSource { handler in
      let last = LastElement<Element>()
      return subscribe { signal in
        if case .element(let element) = signal, !last.replace(with: element, unless: areEqual) {
          return
        }
        handler(signal)
      }
    }
  }
}
