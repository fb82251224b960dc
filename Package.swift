// swift-tools-version: 6.2
import PackageDescription

/// One set of rules for every target: warnings are errors, and what a file uses it imports itself.
let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Whether another package depends on this one: SwiftPM reads the manifest of a dependency in its repository, and then in a
/// folder of checkouts. That package fetches nothing for our programs and tests, and swift-metrics only with the trait.
/// (Traits could switch the programs too. But SwiftPM 6.3 passes two traits to the compiler in a random sequence, and then
/// compiles everything again.)
let isDependency =
    Context.packageDirectory == "/" || Context.packageDirectory.contains("/checkouts/")
    || Context.packageDirectory.contains("/registry/")

let package = Package(
    name: "BlueCap",
    products: [
        .library(name: "BlueCapFutures", targets: ["BlueCapFutures"]),
        .library(name: "BlueCapKit", targets: ["BlueCapKit"]),
        .library(name: "Bluejay", targets: ["Bluejay"]),
        .library(name: "CoreBluetooth", targets: ["CoreBluetooth"]),
        .library(name: "BlueCapMetrics", targets: ["BlueCapMetrics"]),
        .library(name: "BlueCapProfiles", targets: ["BlueCapProfiles"]),
        .library(name: "BlueZSimulator", targets: ["BlueZSimulator"]),
    ],
    traits: [.trait(name: "Metrics", description: "The library BlueCapMetrics, which needs swift-metrics.")],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    ],
    targets: [
        // The arrows of Documentation/Architecture.md; `make lint` checks that no import goes another way.
        .systemLibrary(name: "CBlueCapDBusLibrary", pkgConfig: "dbus-1", providers: [.apt(["libdbus-1-dev"])]),
        .target(name: "CBlueCapDBus", dependencies: ["CBlueCapDBusLibrary"]),
        .target(name: "BlueCapFutures", swiftSettings: strict),
        .target(name: "CBlueCapReactor"),
        .target(name: "BlueCapReactor", dependencies: ["CBlueCapReactor", "BlueCapFutures"], swiftSettings: strict),
        .target(
            name: "BlueCapDBus", dependencies: ["CBlueCapDBus", "BlueCapFutures", "BlueCapReactor"],
            swiftSettings: strict),
        .target(name: "BlueCapGATT", swiftSettings: strict),
        .target(name: "BlueCapProfiles", dependencies: ["BlueCapGATT"], swiftSettings: strict),
        .target(
            name: "BlueCapBlueZ", dependencies: ["BlueCapDBus", "BlueCapFutures", "BlueCapGATT", "BlueCapReactor"],
            swiftSettings: strict),
        .target(
            name: "BlueCapKit",
            dependencies: [
                "BlueCapBlueZ", "BlueCapDBus", "BlueCapFutures", "BlueCapGATT", "BlueCapProfiles", "BlueCapReactor",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .target(
            name: "BlueCapMetrics",
            dependencies: [
                "BlueCapKit", "BlueCapFutures",
                .product(
                    name: "CoreMetrics", package: "swift-metrics",
                    condition: isDependency ? .when(traits: ["Metrics"]) : nil),
            ],
            swiftSettings: strict),
        .target(name: "Bluejay", dependencies: ["BlueCapKit"], swiftSettings: strict),
        .target(
            name: "CoreBluetooth", dependencies: ["BlueCapKit", "BlueCapFutures", "BlueCapGATT"], swiftSettings: strict),
        .target(
            name: "BlueZSimulator", dependencies: ["BlueCapDBus", "BlueCapFutures", "BlueCapReactor"],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

if !isDependency {
    package.products.append(.executable(name: "bluecap", targets: ["bluecap"]))
    package.dependencies.append(.package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"))
    package.targets += [
        .executableTarget(
            name: "bluecap",
            dependencies: [
                "BlueCapKit", "BlueZSimulator",
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
            name: "ServeBatteryExample", dependencies: ["BlueCapKit"], path: "Examples/ServeBattery",
            swiftSettings: strict),
        .executableTarget(
            name: "PairExample", dependencies: ["BlueCapKit"], path: "Examples/Pair", swiftSettings: strict),
        .executableTarget(
            name: "PairWithQuestionsExample", dependencies: ["BlueCapKit"], path: "Examples/PairWithQuestions",
            swiftSettings: strict),
        // Code for iOS, in the language mode of most such programs.
        .executableTarget(
            name: "HeartRateMonitorExample", dependencies: ["CoreBluetooth"], path: "Examples/HeartRateMonitor",
            swiftSettings: [.swiftLanguageMode(.v5)]),

        .target(
            name: "TestSupport",
            dependencies: [
                "BlueCapKit", "Bluejay", "BlueZSimulator", "BlueCapDBus", "BlueCapFutures", "BlueCapReactor",
                "TestPrograms",
            ],
            path: "Tests/TestSupport", swiftSettings: strict),
        // The tests' random numbers: without dependencies, so that the tests of any module can use it.
        .target(name: "TestRandomness", path: "Tests/TestRandomness", swiftSettings: strict),
        // How tests start programs, and which do: without dependencies, too.
        .target(name: "TestPrograms", path: "Tests/TestPrograms", swiftSettings: strict),
        .testTarget(
            name: "FuturesTests", dependencies: ["BlueCapFutures", "TestPrograms", "TestRandomness"],
            swiftSettings: strict),
        // Code written for the documented API, in the language mode it was written in.
        .testTarget(
            name: "FuturesSwift5Tests", dependencies: ["BlueCapFutures"],
            swiftSettings: [.treatAllWarnings(as: .error), .swiftLanguageMode(.v5)]),
        .testTarget(
            name: "ReactorTests", dependencies: ["BlueCapReactor", "BlueCapFutures", "TestRandomness"],
            swiftSettings: strict),
        .testTarget(
            name: "DBusTests",
            dependencies: ["BlueCapDBus", "BlueCapReactor", "BlueCapFutures", "TestRandomness", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "GATTTests", dependencies: ["BlueCapGATT", "BlueCapProfiles", "TestRandomness"], swiftSettings: strict
        ),
        .testTarget(
            name: "BlueZTests",
            dependencies: [
                "BlueCapBlueZ", "BlueCapDBus", "BlueCapReactor", "BlueCapGATT", "BlueCapFutures", "TestPrograms",
                "TestRandomness", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SimulatorTests",
            dependencies: [
                "BlueZSimulator", "BlueCapDBus", "BlueCapReactor", "BlueCapFutures", "TestPrograms", "TestRandomness",
                "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BlueCapKitTests",
            dependencies: [
                "BlueCapKit", "BlueCapBlueZ", "BlueZSimulator", "BlueCapDBus", "BlueCapFutures", "BlueCapGATT",
                "BlueCapReactor",
                "TestRandomness", "TestSupport", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BlueCapMetricsTests",
            dependencies: [
                "BlueCapMetrics", "BlueCapKit", "BlueZSimulator", "BlueCapFutures",
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BluejayTests",
            dependencies: ["Bluejay", "BlueCapKit", "BlueZSimulator", "TestPrograms", "TestRandomness"],
            swiftSettings: strict),
        .testTarget(
            name: "CoreBluetoothTests", dependencies: ["CoreBluetooth", "BlueCapKit", "BlueZSimulator"],
            swiftSettings: strict),
        // Programs for iOS.
        .target(
            name: "CoreBluetoothPrograms", dependencies: ["CoreBluetooth"], path: "Tests/CoreBluetoothPrograms",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "CoreBluetoothProgramTests",
            dependencies: [
                "CoreBluetooth", "CoreBluetoothPrograms", "HeartRateMonitorExample", "BlueCapKit", "BlueZSimulator",
            ],
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "ToolTests",
            dependencies: [
                "bluecap", "ScanExample", "ReadBatteryExample", "ConnectExample", "ScriptExample", "FollowExample",
                "HeartRateExample", "HeartRateMonitorExample", "ServeBatteryExample", "PairExample",
                "PairWithQuestionsExample",
                "BlueCapKit", "BlueZSimulator", "TestPrograms", "TestRandomness", "TestSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "WireTests",
            dependencies: [
                "BlueCapKit", "BlueZSimulator", "BlueCapDBus", "BlueCapReactor", "BlueCapFutures", "TestPrograms",
                "TestRandomness",
                "TestSupport",
            ],
            swiftSettings: strict),
        // What the documents declare and show; Documentation/reference/Conformance.md says what is tested where.
        .testTarget(
            name: "ConformanceTests", dependencies: ["BlueCapKit", "BlueZSimulator", "Bluejay", "TestSupport"],
            exclude: ["documented-items.txt"], swiftSettings: strict),
        // The same in the language mode the documents were written for (`Documented` is a link).
        .testTarget(
            name: "ConformanceSwift5Tests", dependencies: ["BlueCapKit", "BlueZSimulator", "Bluejay", "TestSupport"],
            swiftSettings: [.treatAllWarnings(as: .error), .swiftLanguageMode(.v5)]),
        .testTarget(
            name: "RadioTests",
            dependencies: [
                "BlueCapKit", "BlueZSimulator", "CoreBluetooth", "CoreBluetoothPrograms", "HeartRateMonitorExample",
                "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "RegressionTests",
            dependencies: [
                "BlueCapKit", "BlueZSimulator", "BlueCapDBus", "BlueCapFutures", "BlueCapReactor", "TestPrograms",
                "TestRandomness",
                "TestSupport",
            ],
            swiftSettings: strict),
    ]
}
