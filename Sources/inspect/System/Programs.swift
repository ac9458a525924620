import Foundation
import Glibc

/// The name of an inspector socket: `PROGRAM-PID-NUMBER.sock`.
struct SocketName: Equatable, Sendable {
  let program: String
  let pid: Int

  init?(_ file: String) {
    guard file.hasSuffix(".sock") else { return nil }
    let parts = file.dropLast(5).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 3, Int(parts[parts.count - 1]) != nil,
      let pid = Int(parts[parts.count - 2])
    else { return nil }
    program = parts.dropLast(2).joined(separator: "-")
    self.pid = pid
  }

  /// Whether the program has a name or a process identifier.
  func isCalled(_ target: String) -> Bool { program == target || "\(pid)" == target }
}

/// A connection, and the path of its socket.
struct Link {
  let path: String
  let connection: ProgramConnection
}

/// A program that can be inspected.
struct Program {
  let link: Link
  let hello: Hello

  /// Whether its client has a name, alone or as lists show it.
  func isNamed(_ name: String) -> Bool { hello.name == name || hello.title == name }
}

/// The programs that have answered, and why others refuse the connection.
struct Answers {
  var programs: [Program] = []
  var refusals: [String] = []

  /// Connects to sockets, and waits for the greetings. No program answers at the socket of one that was
  /// killed.
  init(at paths: [String]) {
    for path in paths {
      guard let connection = try? ProgramConnection(path: path) else { continue }
      switch connection.firstMessage(before: Time.monotonic + 2) {
      case .hello(let hello):
        programs.append(Program(link: Link(path: path, connection: connection), hello: hello))
      case .bye(let reason): refusals.append("\(path): \(reason.printable)")
      default: break
      }
    }
  }
}

/// Finds the programs that can be inspected.
struct Programs: Equatable, Sendable {
  /// The folder of the sockets.
  let folder: String

  /// The folder of this user, in the same place as a program puts its socket.
  static var ofUser: Programs {
    func directory(_ name: String) -> String? {
      ProcessInfo.processInfo.environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
    }
    if let runtime = directory("XDG_RUNTIME_DIR") {
      return Programs(folder: "\(runtime)/swift-operation")
    }
    let temporary = directory("TMPDIR") ?? "/tmp"
    let slash = temporary.hasSuffix("/") ? "" : "/"
    return Programs(folder: "\(temporary)\(slash)swift-operation-\(geteuid())")
  }

  /// Returns the paths of the sockets whose program has a name or a process identifier.
  func sockets(matching target: String? = nil) -> [String] {
    guard isPrivate, let files = try? FileManager.default.contentsOfDirectory(atPath: folder)
    else { return [] }
    return files.sorted().filter { file in
      guard let name = SocketName(file) else { return false }
      return target.map(name.isCalled) ?? true
    }.map { "\(folder)/\($0)" }
  }

  /// Whether the folder belongs to this user. Another user could put sockets of their own in it.
  private var isPrivate: Bool {
    var status = stat()
    return stat(folder, &status) == 0 && status.st_uid == geteuid()
  }

  /// Returns the programs that answer: those with a name or a process identifier, and otherwise those
  /// whose client has that name.
  func all(matching target: String? = nil) -> Answers {
    var answers = Answers(at: sockets(matching: target))
    // A number is a process identifier.
    guard let target, answers.programs.isEmpty, Int(target) == nil else { return answers }
    answers = Answers(at: sockets())
    answers.programs.removeAll { !$0.isNamed(target) }
    return answers
  }
}

/// What the user wants to inspect.
struct Target: Equatable, Sendable {
  enum Kind: Equatable, Sendable {
    case any
    case socket(path: String)
    /// A program by its name, its process identifier, or the name of its client.
    case program(String)
  }

  var kind: Kind
  var programs: Programs

  init(_ argument: String?, programs: Programs) {
    self.programs = programs
    switch argument {
    case nil: kind = .any
    case let argument? where argument.contains("/"): kind = .socket(path: argument)
    case let argument?: kind = .program(argument)
    }
  }

  /// Returns the sockets that could be meant.
  var candidates: [String] {
    switch kind {
    case .any: programs.sockets()
    case .socket(let path): [path]
    case .program(let name): programs.sockets(matching: name)
    }
  }

  /// Connects to the next start of a program: to a socket that is not `last`.
  func connect(after last: String?) -> Link? {
    let file = last.flatMap { $0.split(separator: "/").last }.flatMap { SocketName(String($0)) }
    // The name of a client is only in the greeting.
    if case .program(let name) = kind, file?.isCalled(name) != true {
      return programs.all(matching: name).programs.first?.link
    }
    var paths = candidates
    if let last, let file {
      let folder = last.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      let siblings = Programs(folder: folder.joined(separator: "/"))
      paths = siblings.sockets(matching: file.program).filter { $0 != last } + [last]
    }
    for path in paths {
      if let connection = try? ProgramConnection(path: path) {
        return Link(path: path, connection: connection)
      }
    }
    return nil
  }
}
