// swift-tools-version: 6.2
import PackageDescription

/// Measurements, apart from the library, so that what they need never reaches a user of it.
let package = Package(
    name: "Benchmarks",
    dependencies: [
        .package(name: "BlueCap", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/OpenCombine/OpenCombine", exact: "0.14.0"),
    ],
    targets: [
        // `make bench-futures`: the same work done with our futures, SwiftNIO's, OpenCombine and async/await.
        .target(name: "FuturesBenchmarkAllocations"),
        .executableTarget(
            name: "FuturesBenchmark",
            dependencies: [
                "FuturesBenchmarkAllocations",
                .product(name: "BlueCapFutures", package: "BlueCap"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "OpenCombine", package: "OpenCombine"),
            ]),

        // `make bench-bus`: a pretend bluetoothd that sends as fast as the bus carries, the scanners that listen, centrals
        // that connect, read and subscribe, and a peripheral that sends notifications.
        .systemLibrary(name: "LibDBus", pkgConfig: "dbus-1", providers: [.apt(["libdbus-1-dev"])]),
        .executableTarget(name: "BusFlooder", dependencies: ["LibDBus"]),
        .executableTarget(name: "BusScannerInC", dependencies: ["LibDBus"]),
        .executableTarget(name: "BusCentralInC", dependencies: ["LibDBus"]),
        .executableTarget(
            name: "BusScannerInSwift", dependencies: [.product(name: "BlueCapKit", package: "BlueCap")]),
        .executableTarget(
            name: "BusCentralInSwift", dependencies: [.product(name: "BlueCapKit", package: "BlueCap")]),
        .executableTarget(
            name: "BusPeripheralInSwift", dependencies: [.product(name: "BlueCapKit", package: "BlueCap")]),
    ],
    swiftLanguageModes: [.v6]
)
