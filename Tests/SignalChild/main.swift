import Glibc
import Operation
import Synchronization

/// What the tests of the signals of the terminal stop and continue. It writes a line for every
/// change of activity, ends its subscription when it reads a byte, says what handles the signals
/// then, and ends when it reads another one.

func say(_ line: String) {
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
    say("own stop")
    raise(SIGSTOP)
  }
  install(SIGCONT) { _ in say("own continue") }
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

/// Subscribes and cancels, and says what is left of it.
func leave(_ cycles: Int, _ name: String, _ subscribe: () -> OperationSubscription) {
  subscribe().cancel()
  let descriptors = count("/proc/self/fd")
  let threads = count("/proc/self/task")
  for _ in 0..<cycles { subscribe().cancel() }
  // The threads of the runtime's pool are none of ours.
  let isThreadLeft = count("/proc/self/task") - threads > 32
  say("\(name): \(count("/proc/self/fd") - descriptors) descriptors, threads: \(isThreadLeft)")
}

/// Opens a terminal and starts a job behind it; hands the terminal over for every `SIGUSR1`, and
/// takes it back for every `SIGUSR2`, as a shell does with a job that runs.
func beShell(on path: String) -> Never {
  let terminal = open(path, O_RDWR)
  signal(SIGTTOU, SIG_IGN)
  var (signals, attributes) = (sigset_t(), posix_spawnattr_t())
  sigemptyset(&signals)
  posix_spawnattr_init(&attributes)
  posix_spawnattr_setsigmask(&attributes, &signals)
  posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
  for number in [SIGUSR1, SIGUSR2] { sigaddset(&signals, number) }
  sigprocmask(SIG_BLOCK, &signals, nil)
  var words = [strdup(CommandLine.arguments[0]), strdup("plain"), nil]
  var job = pid_t()
  posix_spawn(&job, CommandLine.arguments[0], nil, &attributes, &words, environ)
  say("\(job)")
  while true {
    var number: Int32 = 0
    sigwait(&signals, &number)
    say("\(tcsetpgrp(terminal, number == SIGUSR1 ? job : getpgrp()))")
  }
}

let observer = TerminalActivityObserver.shared
let mode = CommandLine.arguments.dropFirst().first
switch mode {
case "cycles":
  leave(10_000, "terminal") { observer.subscribe { _ in } }
  // A file takes what is written, and never tells of pressure; the kernel takes its time to end.
  let written = PressureStallSource(file: CommandLine.arguments[2])
  leave(10_000, "pressure") { written.subscribe { _ in } }
  let source = PressureStallSource.shared
  leave(100, "pressure of the kernel") { source.subscribe { _ in } }
  let subscription = source.subscribe { _ in }
  leave(10_000, "pressure beside another") { source.subscribe { _ in } }
  subscription.cancel()
  exit(0)
case "shell": beShell(on: CommandLine.arguments[2])
case "own": installOwnHandlers()
case "ignoring": signal(SIGTSTP, SIG_IGN)
default: break
}

/// Listens to one change, and then anew.
func listenOnce() {
  let subscription = Mutex(OperationSubscription.empty)
  let new = observer.subscribe { activity in
    say("\(activity)")
    subscription.withLock { $0 }.cancel()
    listenOnce()
  }
  subscription.withLock { $0 = new }
  say("listening")
}

if mode == "anew" {
  listenOnce()
  waitForInput()
  exit(0)
}

let before = [disposition(of: SIGTSTP), disposition(of: SIGCONT)]
say("\(observer.currentActivity)")
let subscription = observer.subscribe { activity in
  say("\(activity) \(observer.currentActivity)")
  while mode == "slow" { pause() }
}
if mode == "later" { installOwnHandlers() }
let during = [disposition(of: SIGTSTP), disposition(of: SIGCONT)]
say("ready")
waitForInput()
subscription.cancel()
let after = [disposition(of: SIGTSTP), disposition(of: SIGCONT)]
say(after == before ? "as before" : after == during ? "as during" : "changed")
// What was put back works, too: the signals are its own again.
say("done")
waitForInput()
