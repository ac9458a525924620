import Glibc
import Operation
import Synchronization

/// The program that the tests of the terminal's signals stop and continue. It writes a line for every
/// change of activity, ends its subscription when it reads a byte, writes what handles the signals
/// then, and exits when it reads another byte.

func printLine(_ line: String) {
  let bytes = Array("\(line)\n".utf8)
  _ = write(STDOUT_FILENO, bytes, bytes.count)
}

func waitForInput() {
  var byte: UInt8 = 0
  _ = read(STDIN_FILENO, &byte, 1)
}

func install(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
  var action = sigaction()
  action.__sigaction_handler.sa_handler = handler
  action.sa_flags = SA_RESTART
  sigaction(number, &action, nil)
}

func installOwnHandlers() {
  install(SIGTSTP) { _ in
    printLine("own stop")
    raise(SIGSTOP)
  }
  install(SIGCONT) { _ in printLine("own continue") }
}

func disposition(of number: Int32) -> Int {
  var action = sigaction()
  sigaction(number, nil, &action)
  return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
}

func count(_ directory: String) -> Int {
  guard let entries = opendir(directory) else { return -1 }
  defer { closedir(entries) }
  var count = 0
  while readdir(entries) != nil { count += 1 }
  return count
}

/// Subscribes and cancels, and prints how many descriptors and threads are left.
func printRemains(_ cycles: Int, _ name: String, _ subscribe: () -> OperationSubscription) {
  subscribe().cancel()
  let descriptors = count("/proc/self/fd")
  let threads = count("/proc/self/task")
  for _ in 0..<cycles { subscribe().cancel() }
  // The runtime starts threads for its pool.
  let isThreadLeft = count("/proc/self/task") - threads > 32
  let left = count("/proc/self/fd") - descriptors
  printLine("\(name): \(left) descriptors, threads: \(isThreadLeft)")
}

/// Opens a terminal, which it owns, starts a job in its background, as `&` does, and prints the number
/// of the job's process.
func runShell(on path: String) -> Never {
  _ = open(path, O_RDWR)
  var attributes = posix_spawnattr_t()
  posix_spawnattr_init(&attributes)
  posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
  var words = [strdup(CommandLine.arguments[0]), strdup("plain"), nil]
  var job = pid_t()
  posix_spawn(&job, CommandLine.arguments[0], nil, &attributes, &words, environ)
  printLine("\(job)")
  while true { pause() }
}

/// Calls a function while only some descriptors are left.
func leaving(_ descriptors: Int, _ body: () -> Void) {
  var limit = rlimit()
  getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  var low = limit
  low.rlim_cur = 64
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &low)
  var opened: [Int32] = []
  while case let number = dup(STDOUT_FILENO), number >= 0 { opened.append(number) }
  for _ in 0..<descriptors { close(opened.removeLast()) }
  body()
  for number in opened { close(number) }
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

/// Serves an inspector with fewer descriptors than it needs, at its start and later.
func printLimits(of path: String) {
  let client = OperationClient()
  leaving(2) {
    do throws(OperationInspectorError) { _ = try client.serveInspector(at: path) } catch {
      printLine("\(error)")
    }
  }
  guard let inspector = try? client.serveInspector(at: path) else { return }
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
  let peer = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
  var limit = rlimit(rlim_cur: 1, rlim_max: 64)
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  // The inspector wakes, and then waits for more descriptors than it may have.
  withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      _ = connect(peer, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  }
  var milliseconds = 0
  while access(path, F_OK) == 0, milliseconds < 10_000 {
    poll(nil, 0, 1)
    milliseconds += 1
  }
  printLine("removed: \(access(path, F_OK) != 0)")
  limit.rlim_cur = 64
  setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  inspector.cancel()
  printLine("served again: \((try? client.serveInspector(at: path)) != nil)")
}

let observer = TerminalActivityObserver.shared
let mode = CommandLine.arguments.dropFirst().first
switch mode {
case "cycles":
  printRemains(10_000, "terminal") { observer.subscribe { _ in } }
  // A plain file accepts the triggers and never reports pressure. A trigger of the kernel takes long
  // to close, so there are fewer of these.
  let written = PressureStallSource(file: CommandLine.arguments[2])
  printRemains(10_000, "pressure") { written.subscribe { _ in } }
  let source = PressureStallSource.shared
  printRemains(100, "pressure of the kernel") { source.subscribe { _ in } }
  let subscription = source.subscribe { _ in }
  printRemains(10_000, "pressure beside another") { source.subscribe { _ in } }
  subscription.cancel()
  exit(0)
case "limits":
  printLimits(of: CommandLine.arguments[2])
  exit(0)
case "descriptors":
  // Before anything else uses the observer.
  leaving(0) {
    OperationIssue.withHandler({ printLine($0.message) }) { observer.subscribe { _ in }.cancel() }
  }
case "shell": runShell(on: CommandLine.arguments[2])
case "own": installOwnHandlers()
case "ignoring": signal(SIGTSTP, SIG_IGN)
case "ignoring-continue": signal(SIGCONT, SIG_IGN)
default: break
}

/// Subscribes to one change, and then to the next one anew.
func subscribeOnce() {
  let subscription = Mutex(OperationSubscription.empty)
  let new = observer.subscribe { activity in
    printLine("\(activity)")
    subscription.withLock { $0 }.cancel()
    subscribeOnce()
  }
  subscription.withLock { $0 = new }
  printLine("subscribed")
}

if mode == "anew" {
  subscribeOnce()
  waitForInput()
  exit(0)
}

let before = [disposition(of: SIGTSTP), disposition(of: SIGCONT)]
printLine("\(observer.currentActivity)")
let subscription = observer.subscribe { activity in
  printLine("\(activity) \(observer.currentActivity)")
  while mode == "slow" { pause() }
}
if mode == "later" { installOwnHandlers() }
let during = [disposition(of: SIGTSTP), disposition(of: SIGCONT)]
printLine("ready")
waitForInput()
subscription.cancel()
let after = [disposition(of: SIGTSTP), disposition(of: SIGCONT)]
printLine(after == before ? "as before" : after == during ? "as during" : "changed")
// The restored actions are in effect.
printLine("done")
waitForInput()
