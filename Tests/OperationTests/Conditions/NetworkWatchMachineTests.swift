import ReactiveStreams
import Testing

@testable import Operation

@Suite("The machine of an observer that watches on demand") struct NetworkWatchMachineTests {
  private typealias Machine = NetworkWatchMachine<String>

  private func subscriber() -> Subscriber<NetworkConnectionStatus> { Subscriber { _ in } }

  /// A machine in which so many subscribers listen to a watch.
  private func watching(
    _ status: NetworkConnectionStatus = .connected, subscribers: Int = 1
  ) -> Machine {
    var machine = Machine()
    for _ in 0..<subscribers { _ = machine.subscribe(subscriber()) }
    _ = machine.opened("watch", status)
    return machine
  }

  @Test("Only the first subscriber opens a watch") func opens() {
    var machine = Machine()
    #expect(machine.status == nil)
    let first = machine.subscribe(subscriber())
    #expect(first.opens)
    #expect(!machine.subscribe(subscriber()).opens)
    #expect(machine.status == nil)
    #expect(machine.opened("watch", .disconnected) == false)
    #expect(machine.status == .disconnected)
    #expect(machine.deliveries.pendingCount == 0)
    #expect(!machine.subscribe(subscriber()).opens)
  }

  @Test("The watch is taken when the last subscriber is gone, and still nobody listens")
  func takes() {
    var machine = watching(subscribers: 2)
    let late = machine.subscribe(subscriber())
    #expect(machine.unsubscribe(0).isLast == false)
    #expect(machine.unsubscribe(1).isLast == false)
    #expect(machine.takeUnused() == nil)
    let last = machine.unsubscribe(late.id)
    #expect(last.subscriber != nil && last.isLast)
    #expect(!machine.unsubscribe(late.id).isLast)
    #expect(machine.status == .connected)
    let next = machine.subscribe(subscriber())
    #expect(!next.opens)
    #expect(machine.takeUnused() == nil)
    _ = machine.unsubscribe(next.id)
    #expect(machine.takeUnused() == "watch")
    #expect(machine.takeUnused() == nil)
    #expect(machine.status == nil)
    #expect(machine.subscribe(subscriber()).opens)
  }

  @Test("A watch that nobody wants when it is open says so") func unwanted() {
    var machine = Machine()
    _ = machine.unsubscribe(machine.subscribe(subscriber()).id)
    #expect(machine.takeUnused() == nil)
    #expect(!machine.subscribe(subscriber()).opens)
    _ = machine.unsubscribe(1)
    #expect(machine.opened("watch", .connected) == true)
    #expect(machine.takeUnused() == "watch")
  }

  @Test("Changes are told, and nothing else") func updates() {
    var machine = watching(.connected)
    machine.update(.connected)
    #expect(machine.deliveries.pendingCount == 0)
    machine.update(.disconnected)
    machine.update(.disconnected)
    machine.update(.connected)
    #expect(machine.deliveries.pendingCount == 2)
    #expect(machine.status == .connected)
    var idle = Machine()
    idle.update(.disconnected)
    #expect(idle.status == nil)
  }

  @Test("What was read while the watch was opened is what a change is measured by")
  func reads() {
    var machine = Machine()
    #expect(machine.read(.connected) == .connected)
    _ = machine.subscribe(subscriber())
    #expect(machine.read(.connected) == .connected)
    _ = machine.opened("watch", .disconnected)
    #expect(machine.deliveries.pendingCount == 1)
    #expect(machine.read(.connected) == .disconnected)
    machine.update(.connected)
    #expect(machine.deliveries.pendingCount == 2)
  }

  @Test("Where nothing can be watched, it counts as connected, until the last subscriber is gone")
  func fails() {
    var machine = Machine()
    let first = machine.subscribe(subscriber())
    #expect(machine.read(.disconnected) == .disconnected)
    #expect(machine.fail() == nil)
    #expect(machine.deliveries.pendingCount == 1)
    #expect(machine.status == .connected)
    #expect(machine.read(.disconnected) == .connected)
    let second = machine.subscribe(subscriber())
    #expect(!second.opens)
    _ = machine.unsubscribe(first.id)
    #expect(machine.takeUnused() == nil)
    #expect(machine.status == .connected)
    _ = machine.unsubscribe(second.id)
    #expect(machine.takeUnused() == nil)
    #expect(machine.subscribe(subscriber()).opens)
    _ = machine.unsubscribe(2)
    #expect(machine.fail() == nil)
    #expect(machine.subscribe(subscriber()).opens)
  }

  @Test("A watch that fails is given back, and a connection is told where there was none")
  func failsLater() {
    var machine = watching(.disconnected)
    #expect(machine.fail() == "watch")
    #expect(machine.deliveries.pendingCount == 1)
    #expect(machine.fail() == nil)
    #expect(machine.status == .connected)
    var connected = watching(.connected)
    #expect(connected.fail() == "watch")
    #expect(connected.deliveries.pendingCount == 0)
  }

  @Test("Only the first failure is reported") func reports() {
    var machine = Machine()
    #expect(machine.isFirstReport() == true)
    #expect(machine.isFirstReport() == false)
  }
}
