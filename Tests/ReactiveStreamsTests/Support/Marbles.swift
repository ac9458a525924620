import ReactiveStreams

/// Sends the signals of diagrams through operators, and returns the diagram of the result.
///
/// A character is a second: a letter is an element, `-` is nothing and `|` is the end. In the result,
/// parentheses are around the signals of one second if they have more than one letter. In a second, timers
/// fire first, and then the inputs follow in their order.
///
/// - Parameter operation: Returns the source to follow for those of the inputs.
func marbles(
  _ inputs: String...,
  through operation: ([StreamSource<String>], @escaping StreamTimer) -> StreamSource<String>
) -> String {
  let timer = ManualTimer()
  let broadcasts = inputs.map { _ in Broadcast<String>() }
  let received = Recorder<String>()
  let source = operation(broadcasts.map(\.values.source), timer.schedule)
  let subscription = source.subscribe { received.record($0.element ?? "|") }
  var seenCount = 0
  var result = ""
  for second in 0..<(inputs.map(\.count).max() ?? 0) {
    if second > 0 { timer.advance(by: .seconds(1)) }
    for (broadcast, input) in zip(broadcasts, inputs.map(Array.init)) where second < input.count {
      switch input[second] {
      case "-": break
      case "|": broadcast.finish()
      default: broadcast.send(String(input[second]))
      }
    }
    let new = received.elements[seenCount...].joined()
    seenCount = received.count
    result += new.isEmpty ? "-" : new.count == 1 ? new : "(\(new))"
  }
  subscription.cancel()
  return result
}
