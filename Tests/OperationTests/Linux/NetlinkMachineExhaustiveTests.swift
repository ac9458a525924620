import TestSupport
import Testing

@testable import Operation

/// The machine always waits for an answer, or has a complete one without a change since, or has made
/// three requests. It reports a status at the end of an answer, and the one of that answer. A change
/// during the answer is requested after it.
@Suite("NetlinkMachine, every sequence") struct NetlinkMachineExhaustiveTests {
  private typealias Wire = NetlinkFixtures

  private enum Step: CaseIterable {
    case usableLink, unusableLink, disturbedLinks, route, noRoute, disturbedRoutes
    case error, lateAnswer, notification, irrelevant, overrun, drained
  }

  private struct Walk {
    private enum Phase { case links, routes, listening, failed }

    private var machine = NetlinkMachine()
    private var phase = Phase.links
    private var sequence: UInt32 = 1
    private var round = 1
    private var isInterrupted = false
    private var isOutdated = false
    private var isOverrun = false
    private var hasLink = false
    private var hasRoute = false

    init() { _ = machine.begin() }

    mutating func take(_ step: Step) throws -> Bool {
      if phase == .failed { return false }
      switch step {
      case .usableLink, .unusableLink, .disturbedLinks:
        guard phase == .links else { return false }
        try links(step)
      case .route, .noRoute, .disturbedRoutes:
        guard phase == .routes else { return false }
        try routes(step)
      case .error:
        guard phase != .listening else { return false }
        let output = machine.receive(Wire.error(sequence))
        if round == 3 {
          phase = .failed
          try mustHold(output == .init(hasFailed: true), "the third error is a failure")
        } else {
          try mustHold(output == nextRound(), "an error is followed by another request")
        }
      case .lateAnswer:
        let late = Wire.link(2, 0, flags: Wire.interrupted, sequence: sequence - 1)
        let output = machine.receive(late + Wire.done(sequence - 1) + Wire.error(sequence + 1))
        try mustHold(output == .init(), "the answer to another request is ignored")
      case .irrelevant:
        try mustHold(machine.receive(Wire.message(1)) == .init(), "other messages are ignored")
      case .notification: try notice(machine.receive(Wire.message(4)))
      case .overrun:
        machine.overrun()
        isOverrun = true
      case .drained:
        defer { isOverrun = false }
        if isOverrun {
          try notice(machine.drained())
        } else {
          try mustHold(machine.drained() == .init(), "no notification was lost")
        }
      }
      return true
    }

    private mutating func links(_ step: Step) throws {
      let flags = step == .disturbedLinks ? Wire.interrupted : Wire.answer
      hasLink = step != .unusableLink
      isInterrupted = isInterrupted || step == .disturbedLinks
      let link = Wire.link(2, hasLink ? Wire.usable : 1, flags: flags, sequence: sequence)
      let output = machine.receive(link + Wire.done(sequence))
      phase = .routes
      try mustHold(output == request(.getRoute), "after the links it requests the routes")
    }

    private mutating func routes(_ step: Step) throws {
      let flags = step == .disturbedRoutes ? Wire.interrupted : Wire.answer
      hasRoute = step != .noRoute
      isInterrupted = isInterrupted || step == .disturbedRoutes
      let routes = hasRoute ? Wire.route(through: [2], flags: flags, sequence: sequence) : []
      let output = machine.receive(routes + Wire.done(sequence))
      if isInterrupted || isOutdated, round < 3 {
        try mustHold(output == nextRound(), "a disturbed answer is requested again")
        return
      }
      phase = .listening
      var expected = NetlinkMachine.Output()
      if isOutdated {
        round = 0
        expected = nextRound()
      }
      expected.status = hasLinkAndRoute ? .connected : .disconnected
      try mustHold(output == expected, "the status is that of the answer")
    }

    private var hasLinkAndRoute: Bool { hasLink && hasRoute }

    private mutating func notice(_ output: NetlinkMachine.Output) throws {
      if phase == .listening {
        round = 0
        try mustHold(output == nextRound(), "a change is requested")
      } else {
        isOutdated = true
        try mustHold(output == .init(), "a request is in progress")
      }
    }

    private mutating func nextRound() -> NetlinkMachine.Output {
      round += 1
      (isInterrupted, isOutdated, phase) = (false, false, .links)
      return request(.getLink)
    }

    private mutating func request(_ kind: NetlinkMessage.Kind) -> NetlinkMachine.Output {
      sequence += 1
      return .init(request: NetlinkMessage.request(kind, sequence: sequence))
    }
  }

  @Test("The status is that of a complete answer, and a change during it is requested again")
  func everySequence() {
    exhaust("NetlinkMachine", events: Step.allCases, length: 5, from: Walk()) {
      walk, step in try walk.take(step)
    }
  }
}
