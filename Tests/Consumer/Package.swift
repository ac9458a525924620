// swift-tools-version: 6.0

// A package that depends on this one, has none of its settings, and uses every product.
// `Tests/consumers` also builds it with a dependency by version.

import PackageDescription

let package = Package(
  name: "Consumer",
  dependencies: [.package(name: "swift-operation", path: "../..")],
  targets: [
    .executableTarget(
      name: "Consumer",
      dependencies: [
        .product(name: "Operation", package: "swift-operation"),
        .product(name: "ReactiveStreams", package: "swift-operation"),
        .product(name: "SharingOperation", package: "swift-operation"),
      ])
  ]
)
