// swift-tools-version: 6.2
import PackageDescription

/// One set of rules for every target: warnings are errors, and what a file uses it imports itself.
let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "BlueCap",
    products: [
        .library(name: "Futures", targets: ["Futures"]),
        .library(name: "BlueCapKit", targets: ["BlueCapKit"]),
        .library(name: "Bluejay", targets: ["Bluejay"]),
        .library(name: "Profiles", targets: ["Profiles"]),
        .library(name: "BlueZSimulator", targets: ["BlueZSimulator"]),
        .executable(name: "bluecap", targets: ["bluecap"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        // The arrows of Documentation/Architecture.md; `make lint` checks that no import goes another way.
        .systemLibrary(name: "CDBusLibrary", pkgConfig: "dbus-1", providers: [.apt(["libdbus-1-dev"])]),
        .target(name: "CDBus", dependencies: ["CDBusLibrary"]),
        .target(name: "Futures", swiftSettings: strict),
        .target(name: "CReactor"),
        .target(name: "Reactor", dependencies: ["CReactor", "Futures"], swiftSettings: strict),
        .target(name: "DBus", dependencies: ["CDBus", "Futures", "Reactor"], swiftSettings: strict),
        .target(name: "GATT", swiftSettings: strict),
        .target(name: "Profiles", dependencies: ["GATT"], swiftSettings: strict),
        .target(name: "BlueZ", dependencies: ["DBus", "Futures", "GATT", "Reactor"], swiftSettings: strict),
        .target(
            name: "BlueCapKit", dependencies: ["BlueZ", "DBus", "Futures", "GATT", "Reactor"],
            swiftSettings: strict),
        .target(name: "Bluejay", dependencies: ["BlueCapKit"], swiftSettings: strict),
        .target(name: "BlueZSimulator", dependencies: ["DBus", "Futures", "Reactor"], swiftSettings: strict),
        .executableTarget(
            name: "bluecap",
            dependencies: [
                "BlueCapKit", "BlueZSimulator", "Profiles",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // What the README shows; a test runs it and holds the README to it.
        .executableTarget(
            name: "ScanExample", dependencies: ["BlueCapKit"], path: "Examples/Scan", swiftSettings: strict),
        .executableTarget(
            name: "ReadBatteryExample", dependencies: ["BlueCapKit"], path: "Examples/ReadBattery",
            swiftSettings: strict),
        .executableTarget(
            name: "ConnectExample", dependencies: ["BlueCapKit"], path: "Examples/Connect", swiftSettings: strict),
        .executableTarget(
            name: "ScriptExample", dependencies: ["BlueCapKit"], path: "Examples/Script", swiftSettings: strict),
        .executableTarget(
            name: "FollowExample", dependencies: ["BlueCapKit"], path: "Examples/Follow", swiftSettings: strict),
        .executableTarget(
            name: "HeartRateExample", dependencies: ["Bluejay"], path: "Examples/HeartRate", swiftSettings: strict),
        .executableTarget(
            name: "ServeBatteryExample", dependencies: ["BlueCapKit", "Profiles"], path: "Examples/ServeBattery",
            swiftSettings: strict),

        .target(
            name: "TestSupport",
            dependencies: ["BlueCapKit", "Bluejay", "BlueZSimulator", "DBus", "Futures", "Reactor"],
            path: "Tests/TestSupport", swiftSettings: strict),
        // The tests' random numbers: without dependencies, so that the tests of any module can use it.
        .target(name: "TestRandomness", path: "Tests/TestRandomness", swiftSettings: strict),
        .testTarget(name: "FuturesTests", dependencies: ["Futures", "TestRandomness"], swiftSettings: strict),
        // Code written for the documented API, in the language mode it was written in.
        .testTarget(
            name: "FuturesSwift5Tests", dependencies: ["Futures"],
            swiftSettings: [.treatAllWarnings(as: .error), .swiftLanguageMode(.v5)]),
        .testTarget(
            name: "ReactorTests", dependencies: ["Reactor", "Futures", "TestRandomness"], swiftSettings: strict),
        .testTarget(
            name: "DBusTests", dependencies: ["DBus", "Reactor", "Futures", "TestRandomness", "TestSupport"],
            swiftSettings: strict),
        .testTarget(name: "GATTTests", dependencies: ["GATT", "Profiles", "TestRandomness"], swiftSettings: strict),
        .testTarget(
            name: "BlueZTests", dependencies: ["BlueZ", "DBus", "Reactor", "GATT", "Futures", "TestRandomness"],
            swiftSettings: strict),
        .testTarget(
            name: "SimulatorTests",
            dependencies: ["BlueZSimulator", "DBus", "Reactor", "Futures", "TestRandomness", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "BlueCapKitTests",
            dependencies: [
                "BlueCapKit", "BlueZ", "BlueZSimulator", "DBus", "Futures", "GATT", "Profiles", "Reactor",
                "TestRandomness", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BluejayTests", dependencies: ["Bluejay", "BlueCapKit", "BlueZSimulator", "TestRandomness"],
            swiftSettings: strict),
        .testTarget(
            name: "ToolTests",
            dependencies: [
                "bluecap", "ScanExample", "ReadBatteryExample", "ConnectExample", "ScriptExample", "FollowExample",
                "HeartRateExample", "ServeBatteryExample",
                "BlueCapKit", "BlueZSimulator", "Profiles", "TestRandomness", "TestSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "WireTests",
            dependencies: [
                "BlueCapKit", "BlueZSimulator", "DBus", "Reactor", "Futures", "TestRandomness", "TestSupport",
            ],
            swiftSettings: strict),
        // What the documents declare and show; Documentation/Conformance.md says what is tested where.
        .testTarget(
            name: "ConformanceTests", dependencies: ["BlueCapKit", "BlueZSimulator", "Bluejay", "Profiles"],
            exclude: ["documented-items.txt"], swiftSettings: strict),
        // The same in the language mode the documents were written for (`Documented` is a link).
        .testTarget(
            name: "ConformanceSwift5Tests", dependencies: ["BlueCapKit", "BlueZSimulator", "Bluejay", "Profiles"],
            swiftSettings: [.treatAllWarnings(as: .error), .swiftLanguageMode(.v5)]),
        .testTarget(name: "RadioTests", dependencies: ["BlueCapKit", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "RegressionTests",
            dependencies: [
                "BlueCapKit", "BlueZSimulator", "DBus", "Futures", "Reactor", "TestRandomness", "TestSupport",
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
