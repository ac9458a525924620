/// A notification of a stream to its subscribers.
package enum StreamSignal<Element: Sendable>: Sendable {
  /// An element, and the epoch in which it counts; `nil` if it always does.
  case element(Element, in: StreamEpoch? = nil)
  case finished
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

  /// Returns a source that sends one element to each subscriber.
  ///
  /// - Parameter ends: Whether it ends after the element.
  package static func just(_ element: Element, ends: Bool = false) -> StreamSource {
    StreamSource { handler in
      handler(.element(element))
      if ends { handler(.finished) }
      return .empty
    }
  }
}

extension StreamSource {
  /// A function that calls an action when what is queued in the source has been delivered, and at once if
  /// nothing is.
  package typealias Barrier = @Sendable (_ action: @escaping @Sendable () -> Void) -> Void

  /// Returns a source that also ends when a broadcast does, after it has delivered what is queued by then.
  package func ending(
    with end: Broadcast<Never>, after deliveries: @escaping Barrier
  ) -> StreamSource {
    StreamSource { handler in
      .combined(
        subscribe(handler),
        end.subscribeToSignals { _ in deliveries { handler(.finished) } })
    }
  }

  package func map<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output
  ) -> StreamSource<Output> { compactMap { transform($0) } }

  package func compactMap<Output: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Output?
  ) -> StreamSource<Output> {
    StreamSource<Output> { handler in
      subscribe { signal in
        switch signal {
        case .element(let element, let epoch):
          transform(element).map { handler(.element($0, in: epoch)) }
        case .finished: handler(.finished)
        }
      }
    }
  }

  package func filter(
    _ isIncluded: @escaping @Sendable (Element) -> Bool
  ) -> StreamSource { compactMap { isIncluded($0) ? $0 : nil } }

  package func scan<Output: Sendable>(
    _ initial: Output, _ next: @escaping @Sendable (Output, Element) -> Output
  ) -> StreamSource<Output> {
    StreamSource<Output> { handler in
      let last = LastElement<Output>()
      let results = map { element in
        let result = next(last.value ?? initial, element)
        last.set(result)
        return result
      }
      return results.subscribe(handler)
    }
  }

  /// - Parameter first: An element that counts as sent before.
  package func removeDuplicates(
    after first: Element? = nil, by areEqual: @escaping @Sendable (Element, Element) -> Bool
  ) -> StreamSource {
    StreamSource { handler in
      let last = LastElement<(element: Element, epoch: StreamEpoch?)>(first.map { ($0, nil) })
      return subscribe { signal in
        guard case .element(let element, let epoch) = signal else { return handler(signal) }
        // No lock is held: a source delivers one element at a time. An equal element is no duplicate if
        // a reader has dropped the earlier one.
        if let earlier = last.value, areEqual(earlier.element, element),
          earlier.epoch?.renew(within: epoch) ?? true
        {
          return
        }
        let own = epoch.map { StreamEpoch(within: [$0]) }
        last.set((element, own))
        handler(.element(element, in: own))
      }
    }
  }
}

extension StreamSource {
  /// Sends the elements of both sources, and ends when both have ended.
  package func merge(_ other: StreamSource) -> StreamSource {
    StreamSource { handler in
      let shell = DeliveryShell(BroadcastMachine<Element>(sideCount: 2))
      return .combined(
        shell.subscribe(handler),
        subscribe { signal in shell.commit { $0.send(signal, from: 0) } },
        other.subscribe { signal in shell.commit { $0.send(signal, from: 1) } })
    }
  }
}
