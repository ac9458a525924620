import Foundation
import Glibc

/// The program of `--demo`: the blog of the example `posts`, with many readers.
struct Demo {
  let pid: pid_t
  /// The demo ends when this is closed, whatever ends this process.
  private let input: Descriptor

  /// Starts the demo, and builds it first where it is missing.
  init() throws(InspectError) {
    let inspect = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    let folder = inspect.deletingLastPathComponent()
    let program = folder.appending(path: "posts").path()
    if access(program, X_OK) != 0 { try Self.build(folder.lastPathComponent) }
    let (own, demos) = try Descriptor.pair()
    input = own
    var (files, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
    posix_spawn_file_actions_init(&files)
    posix_spawn_file_actions_adddup2(&files, demos.number, STDIN_FILENO)
    // Its output would be on the screen.
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawnattr_init(&attributes)
    // A group of its own, so that Ctrl-C and Ctrl-Z reach only this process.
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    defer {
      posix_spawnattr_destroy(&attributes)
      posix_spawn_file_actions_destroy(&files)
    }
    var child = pid_t()
    let code = Self.spawn(&child, [program, "--busy"], &files, &attributes)
    guard code == 0 else { throw InspectError("\(program): \(String(cString: strerror(code)))") }
    pid = child
  }

  private static func spawn(
    _ child: inout pid_t, _ words: [String],
    _ files: UnsafePointer<posix_spawn_file_actions_t>? = nil,
    _ attributes: UnsafePointer<posix_spawnattr_t>? = nil
  ) -> Int32 {
    var pointers = words.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return posix_spawnp(&child, words[0], files, attributes, &pointers, environ)
  }

  /// Builds the example. `swift run inspect` builds only the inspector.
  private static func build(_ configuration: String) throws(InspectError) {
    StandardStreams.error("inspect: building the example `posts`\n")
    var (child, status) = (pid_t(), Int32())
    guard spawn(&child, ["swift", "build", "-c", configuration, "--product", "posts"]) == 0,
      waitpid(child, &status, 0) == child, status == 0
    else { throw InspectError("--demo needs the package's example `posts`") }
  }

  /// Waits for the socket of the demo, and connects to it.
  func connect(to target: Target) throws(InspectError) -> Link {
    while true {
      if let link = target.connect(after: nil) { return link }
      guard waitpid(pid, nil, WNOHANG) == 0 else {
        throw InspectError("the demo has ended: see `swift run posts --busy`")
      }
      usleep(50_000)
    }
  }

  /// Ends the demo, which removes its socket.
  func end() {
    shutdown(input.number, Int32(SHUT_RDWR))
    for _ in 0..<40 {
      if waitpid(pid, nil, WNOHANG) != 0 { return }
      usleep(50_000)
    }
    kill(pid, SIGKILL)
    waitpid(pid, nil, 0)
  }
}
