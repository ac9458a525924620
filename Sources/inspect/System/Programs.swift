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
}

/// Finds the programs that can be inspected.
struct Programs: Equatable, Sendable {
  /// The folder of the sockets.
  let folder: String

  init(folder: String) {
    self.folder = folder
  }

  /// The folder of this user, in the same place as a program puts its socket.
  static var ofUser: Programs {
    func variable(_ name: String) -> String? {
      ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
    if let runtime = variable("XDG_RUNTIME_DIR"), runtime.hasPrefix("/") {
      return Programs(folder: "\(runtime)/swift-operation")
    }
    let temporary = variable("TMPDIR") ?? "/tmp"
    let slash = temporary.hasSuffix("/") ? "" : "/"
    return Programs(folder: "\(temporary)\(slash)swift-operation-\(getuid())")
  }

  /// Returns the paths of the sockets whose program has a name or a process identifier.
  func sockets(matching target: String? = nil) -> [String] {
    guard isPrivate, let files = try? FileManager.default.contentsOfDirectory(atPath: folder)
    else { return [] }
    return files.sorted().filter { file in
      guard let name = SocketName(file) else { return false }
      return target == nil || name.program == target || "\(name.pid)" == target
    }.map { "\(folder)/\($0)" }
  }

  /// Whether the folder belongs to this user. Another user could put sockets of their own in it.
  private var isPrivate: Bool {
    var status = stat()
    return stat(folder, &status) == 0 && status.st_uid == getuid()
  }

  /// Returns the programs that answer.
  func all(matching target: String? = nil) -> [Program] {
    sockets(matching: target).compactMap { path in
      guard let connection = try? ProgramConnection(path: path),
        let hello = connection.hello(before: Time.monotonic + 2)
      else { return nil }
      return Program(link: Link(path: path, connection: connection), hello: hello)
    }
  }
}

/// What the user wants to inspect.
struct Target: Equatable, Sendable {
  enum Kind: Equatable, Sendable {
    case any
    case socket(path: String)
    /// A program by its name or its process identifier.
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
    var paths = candidates
    if let last, let name = SocketName(String(last.split(separator: "/").last ?? "")) {
      let folder = last.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      let siblings = Programs(folder: folder.joined(separator: "/"))
      paths = siblings.sockets(matching: name.program).filter { $0 != last } + [last]
    }
    for path in paths {
      if let connection = try? ProgramConnection(path: path) {
        return Link(path: path, connection: connection)
      }
    }
    return nil
  }
}
