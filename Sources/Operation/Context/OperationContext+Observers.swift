extension OperationContext {
  /// The observer of the program's activity; ``TerminalActivityObserver/shared`` by default.
  public var applicationActivityObserver: any ApplicationActivityObserver {
    get { self[ApplicationActivityObserverKey.self] }
    set { self[ApplicationActivityObserverKey.self] = newValue }
  }

  /// The source of memory pressure; ``PressureStallSource/shared`` by default.
  public var memoryPressureSource: any MemoryPressureSource {
    get { self[MemoryPressureSourceKey.self] }
    set { self[MemoryPressureSourceKey.self] = newValue }
  }

  /// The observer of the network; ``NetlinkNetworkObserver/shared`` by default.
  public var networkObserver: any NetworkObserver {
    get { self[NetworkObserverKey.self] }
    set { self[NetworkObserverKey.self] = newValue }
  }

  private enum ApplicationActivityObserverKey: Key {
    static var defaultValue: any ApplicationActivityObserver { TerminalActivityObserver.shared }
  }

  private enum MemoryPressureSourceKey: Key {
    static var defaultValue: any MemoryPressureSource { PressureStallSource.shared }
  }

  private enum NetworkObserverKey: Key {
    static var defaultValue: any NetworkObserver { NetlinkNetworkObserver.shared }
  }
}
