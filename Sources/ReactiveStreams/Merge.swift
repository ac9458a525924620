extension StreamSource {
  package func merge(_ other: StreamSource) -> StreamSource {
    StreamSource { handler in
      let shell = DeliveryShell(BroadcastMachine<Element>(sideCount: 2))
      return .combined(
        shell.subscribe(handler),
        subscribe { signal in shell.commit { $0.send(signal) } },
        other.subscribe { signal in shell.commit { $0.send(signal) } })
    }
  }
}
