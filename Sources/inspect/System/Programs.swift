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

/// A connection, and its socket.
struct Link {
  let socket: UsedSocket
  let connection: ProgramConnection

  init(path: String, connection: ProgramConnection) {
    socket = UsedSocket(path)
    self.connection = connection
  }

  var path: String { socket.path }
}

/// A socket that was connected.
struct UsedSocket: Equatable, Sendable {
  let path: String
  /// The sockets in its folder at that time. Those of later starts are not among them.
  private let present: Set<String>

  init(_ path: String) {
    self.path = path
    present = Set(Self.folder(of: path).sockets())
  }

  var name: SocketName? { path.split(separator: "/").last.flatMap { SocketName(String($0)) } }

  /// Returns the sockets of later starts of a program. The last one is this one, which they may have, too.
  func nextSockets(of program: String) -> [String] {
    Self.folder(of: path).sockets(matching: program).filter { !present.contains($0) } + [path]
  }

  private static func folder(of path: String) -> Programs {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    return Programs(folder: parts.joined(separator: "/"))
  }
}

/// A program that can be inspected.
struct Program {
  let link: Link
  let hello: Hello

  /// Whether its client has a name, alone or as lists show it, or the program has. The name of its socket
  /// has only the beginning of a long one, and no spaces.
  func isNamed(_ name: String) -> Bool {
    [hello.name, hello.title(), hello.title(separator: " - "), hello.program].contains(name)
  }
}

/// The programs that have answered, and why others refuse the connection.
struct Answers {
  var programs: [Program] = []
  var refusals: [String] = []

  /// Connects to sockets, and waits for the greetings. No program answers at the socket of one that was
  /// killed.
  ///
  /// - Parameter patience: The time that all programs together have to answer, in seconds.
  init(at paths: [String], patience: Double) {
    let links = paths.compactMap { path in
      (try? ProgramConnection(path: path)).map { Link(path: path, connection: $0) }
    }
    let deadline = Time.monotonic + patience
    for link in links {
      let name = link.path.printable
      switch link.connection.firstMessage(before: deadline) {
      case .hello(let hello): programs.append(Program(link: link, hello: hello))
      case .bye(let reason): refusals.append("\(name): \(reason.printable)")
      default:
        if !link.connection.isEnded { refusals.append("\(name): the program does not answer") }
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
  ///
  /// - Parameter patience: The time that they have to answer, in seconds.
  func all(matching target: String? = nil, patience: Double = 2) -> Answers {
    var answers = Answers(at: sockets(matching: target), patience: patience)
    // A number is a process identifier.
    guard let target, answers.programs.isEmpty, Int(target) == nil else { return answers }
    answers = Answers(at: sockets(), patience: patience)
    answers.programs.removeAll { !$0.isNamed(target) }
    return answers
  }
}

/// What the user wants to inspect.
struct Target: Equatable, Sendable {
  /// The time that programs have to answer while one searches again and again, in seconds.
  private static let searchPatience = 0.25

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

  /// Connects to the next start of a program: by the name of a client, to the one that has it, and otherwise
  /// to one that began after `last` was connected, or to that socket again.
  func connect(after last: UsedSocket?) -> Link? {
    let file = last?.name
    // The name of a client is only in the greeting.
    if case .program(let name) = kind, file?.isCalled(name) != true {
      return programs.all(matching: name, patience: Self.searchPatience).programs.first?.link
    }
    var paths = candidates
    if let last, let file { paths = last.nextSockets(of: file.program) }
    for path in paths {
      if let connection = try? ProgramConnection(path: path) {
        return Link(path: path, connection: connection)
      }
    }
    return nil
  }
}
