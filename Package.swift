// swift-tools-version: 6.3

import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .enableUpcomingFeature("InferIsolatedConformances"),
  .treatAllWarnings(as: .error),
]

// Makes the library as fast in other modules as in its own, without `@inlinable` on everything.
let library =
  strict + [.unsafeFlags(["-cross-module-optimization"], .when(configuration: .release))]

// For programs that are built for release, where they contain specialised code of all three modules. They are
// compiled again only after a change of a module that they list.
let modules: [Target.Dependency] = ["ReactiveStreams", "Operation", "SharingOperation"]

let package = Package(
  name: "swift-operation",
  products: [
    .library(name: "Operation", targets: ["Operation"]),
    .library(name: "SharingOperation", targets: ["SharingOperation"]),
    .library(name: "ReactiveStreams", targets: ["ReactiveStreams"]),
    .executable(name: "inspect", targets: ["inspect"]),
  ],
  targets: [
    .target(name: "ReactiveStreams", swiftSettings: library),
    .target(name: "Operation", dependencies: ["ReactiveStreams"], swiftSettings: library),
    .target(name: "SharingOperation", dependencies: ["Operation"], swiftSettings: library),
    .executableTarget(name: "inspect", swiftSettings: strict),
    .target(name: "Fetching", path: "Examples/Fetching", swiftSettings: strict),
    .target(name: "LoopbackServer", path: "Examples/LoopbackServer", swiftSettings: strict),
    .target(
      name: "Snippets", dependencies: ["SharingOperation", "Fetching"], path: "Examples/Snippets",
      swiftSettings: strict),
    .executableTarget(
      name: "posts", dependencies: ["SharingOperation", "Fetching", "LoopbackServer"],
      path: "Examples/Posts", swiftSettings: strict),
    .executableTarget(
      name: "thread", dependencies: ["SharingOperation", "Fetching", "LoopbackServer"],
      path: "Examples/Thread", swiftSettings: strict),
    .executableTarget(
      name: "friends", dependencies: ["SharingOperation", "Fetching", "LoopbackServer"],
      path: "Examples/Friends", swiftSettings: strict),
    .executableTarget(
      name: "projects", dependencies: ["SharingOperation", "Fetching", "LoopbackServer"],
      path: "Examples/Projects", swiftSettings: strict),
    .executableTarget(
      name: "watch", dependencies: ["SharingOperation"], path: "Examples/Watch",
      swiftSettings: strict),
    .executableTarget(
      name: "search", dependencies: ["SharingOperation"], path: "Examples/Search",
      swiftSettings: strict),
    .target(
      name: "TestSupport", dependencies: ["ReactiveStreams"], path: "Tests/TestSupport",
      swiftSettings: strict),
    .testTarget(
      name: "ReactiveStreamsTests", dependencies: ["ReactiveStreams", "TestSupport"],
      swiftSettings: strict),
    .executableTarget(
      name: "SignalChild", dependencies: ["Operation"], path: "Tests/SignalChild",
      swiftSettings: strict),
    .executableTarget(
      name: "KillChild", dependencies: ["Operation"], path: "Tests/KillChild",
      swiftSettings: strict),
    .testTarget(
      name: "OperationTests",
      dependencies: ["Operation", "SignalChild", "KillChild", "TestSupport"],
      swiftSettings: strict),
    .executableTarget(
      name: "storm", dependencies: modules, path: "Tests/Storm", swiftSettings: strict),
    .testTarget(name: "StormTests", dependencies: ["storm"], swiftSettings: strict),
    .executableTarget(
      name: "benchmarks", dependencies: modules, path: "Tests/Benchmarks",
      exclude: ["baseline.json"], swiftSettings: strict),
    .testTarget(
      name: "SharingOperationTests", dependencies: ["SharingOperation", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "BenchmarksTests", dependencies: ["benchmarks"], swiftSettings: strict),
    .testTarget(name: "SeedTests", dependencies: ["SharingOperation"], swiftSettings: strict),
    .testTarget(
      name: "DocumentationTests", dependencies: ["Snippets", "SharingOperation"],
      swiftSettings: strict),
    .testTarget(
      name: "LoopbackServerTests", dependencies: ["Fetching", "LoopbackServer"],
      swiftSettings: strict),
    .testTarget(
      name: "PostsTests", dependencies: ["posts", "SharingOperation", "LoopbackServer"],
      swiftSettings: strict),
    .testTarget(
      name: "ThreadTests", dependencies: ["thread", "SharingOperation", "LoopbackServer"],
      swiftSettings: strict),
    .testTarget(
      name: "FriendsTests", dependencies: ["friends", "SharingOperation", "LoopbackServer"],
      swiftSettings: strict),
    .testTarget(
      name: "ProjectsTests", dependencies: ["projects", "SharingOperation", "LoopbackServer"],
      swiftSettings: strict),
    .testTarget(
      name: "WatchTests", dependencies: ["watch", "SharingOperation"], swiftSettings: strict),
    // The tests start both programs.
    .testTarget(
      name: "InspectTests", dependencies: ["inspect", "posts"], swiftSettings: strict),
    .testTarget(
      name: "SearchTests", dependencies: ["search", "SharingOperation"], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
