import Foundation

/// `storm --seed N --seconds S --steps N`: performs random operations concurrently, and checks the
/// promises.
@main
enum Program {
  static func main() async {
    var options: [String: Int] = ["--seed": 1, "--seconds": 10, "--steps": 50_000]
    var arguments = CommandLine.arguments.dropFirst()
    while let name = arguments.popFirst() {
      guard options[name] != nil, let text = arguments.popFirst(), let value = Int(text), value >= 0
      else { usage(name) }
      options[name] = value
    }
    let end = Date().addingTimeInterval(TimeInterval(options["--seconds"] ?? 0))
    var seed = UInt64(options["--seed"] ?? 1)
    var failed = false
    repeat {
      let storm = Storm(steps: options["--steps"] ?? 0)
      let result = await storm.run(seed: seed)
      print(
        "seed \(seed): \(result.steps) steps, \(result.stores) stores, \(result.witnesses) subscribers at the end, \(result.failures.count) failures"
      )
      for failure in result.failures.prefix(20) { print("  \(failure)") }
      failed = failed || !result.failures.isEmpty
      seed += 1
    } while Date() < end && !failed
    exit(failed ? 1 : 0)
  }

  private static func usage(_ argument: String) -> Never {
    let text =
      "storm: \(argument) is not understood\nusage: storm [--seed N] [--seconds S] [--steps N]\n"
    FileHandle.standardError.write(Data(text.utf8))
    exit(64)
  }
}
