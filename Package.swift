// swift-tools-version: 6.2
import PackageDescription

/// One set of rules for every target: warnings are errors, and what a file uses it imports itself.
let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// In these modules an `async` function runs where its caller runs, which saves two changes of the thread for each call.
let withCaller: [SwiftSetting] = strict + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

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
        .target(name: "BlueCapFutures", swiftSettings: withCaller),
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
            swiftSettings: withCaller),
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

/// The programs of Examples, and the module that each uses: what the README shows; tests run them and hold the README to them.
let examples: KeyValuePairs = [
    "Connect": "BlueCapKit", "Follow": "BlueCapKit", "HeartRate": "Bluejay", "HeartRateMonitor": "CoreBluetooth",
    "Pair": "BlueCapKit", "PairWithQuestions": "BlueCapKit", "ReadBattery": "BlueCapKit", "Scan": "BlueCapKit",
    "Script": "BlueCapKit", "SensorGateway": "BlueCapKit", "ServeBattery": "BlueCapKit",
    "ServeClimate": "BlueCapKit", "ServeThermostat": "BlueCapKit",
]

if !isDependency {
    package.products += [
        .executable(name: "bluecap", targets: ["bluecap"]),
        // For the gateway, whose package is beside this one.
        .library(name: "BlueCapCipher", targets: ["BlueCapCipher"]),
    ]
    package.dependencies.append(.package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"))
    package.targets += examples.map { name, module in
        // The code for iOS is in the language mode of most such programs.
        .executableTarget(
            name: "\(name)Example", dependencies: [.init(stringLiteral: module)], path: "Examples/\(name)",
            swiftSettings: module == "CoreBluetooth" ? [.swiftLanguageMode(.v5)] : strict)
    }
    package.targets += [
        // The tool contains ncurses, so that it needs no library of the terminal where it is installed.
        .target(
            name: "CBlueCapTerminal", linkerSettings: [.linkedLibrary(":libncursesw.a"), .linkedLibrary(":libtinfo.a")]),
        .target(name: "CBlueCapNoLocales"),
        // The cipher for keys of sensors, for programs: the library contains none.
        .target(name: "BlueCapCipher", dependencies: ["BlueCapGATT"], swiftSettings: strict),
        .executableTarget(
            name: "bluecap",
            dependencies: [
                "BlueCapCipher", "BlueCapKit", "BlueZSimulator", "CBlueCapTerminal", "CBlueCapNoLocales",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        .target(
            name: "TestSupport",
            dependencies: [
                "BlueCapKit", "Bluejay", "BlueZSimulator", "BlueCapDBus", "BlueCapFutures", "BlueCapReactor",
                "TestBasics",
            ],
            path: "Tests/TestSupport", swiftSettings: strict),
        // The tests' random numbers, and how tests start programs: without dependencies, so that all tests can use it.
        .target(name: "TestBasics", path: "Tests/TestBasics", swiftSettings: strict),
        .testTarget(
            name: "FuturesTests", dependencies: ["BlueCapFutures", "TestBasics"], swiftSettings: strict),
        .testTarget(
            name: "DBusTests",
            dependencies: [
                "BlueCapDBus", "BlueCapReactor", "BlueCapFutures", "CBlueCapDBusLibrary", "TestBasics", "TestSupport",
            ],
            exclude: ["WireCorpus.txt"], swiftSettings: strict),
        .testTarget(
            name: "GATTTests", dependencies: ["BlueCapGATT", "BlueCapProfiles", "TestBasics"], swiftSettings: strict),
        .testTarget(
            name: "BlueZTests",
            dependencies: [
                "BlueCapBlueZ", "BlueCapDBus", "BlueCapReactor", "BlueCapGATT", "BlueCapFutures", "TestBasics",
                "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SimulatorTests",
            dependencies: [
                "BlueZSimulator", "BlueCapDBus", "BlueCapReactor", "BlueCapFutures", "TestBasics",
                "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BlueCapKitTests",
            dependencies: [
                "BlueCapKit", "BlueCapBlueZ", "BlueCapDBus", "BlueCapFutures", "BlueCapGATT", "BlueCapMetrics",
                "BlueCapReactor", "BlueZSimulator", "TestBasics", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BluejayTests",
            dependencies: ["Bluejay", "BlueCapKit", "BlueZSimulator", "TestBasics", "TestSupport"],
            swiftSettings: strict),
        // Programs for iOS.
        .target(
            name: "CoreBluetoothPrograms", dependencies: ["CoreBluetooth"], path: "Tests/CoreBluetoothPrograms",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "CoreBluetoothTests",
            dependencies: [
                "CoreBluetooth", "CoreBluetoothPrograms", "HeartRateMonitorExample", "BlueCapKit", "BlueZSimulator",
                "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ToolTests",
            dependencies: [
                "bluecap", "BlueCapKit", "BlueZSimulator", "TestBasics", "TestSupport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ] + examples.map { .init(stringLiteral: "\($0.key)Example") },
            swiftSettings: strict),
        .testTarget(
            name: "WireTests",
            dependencies: [
                "BlueCapKit", "BlueZSimulator", "BlueCapDBus", "BlueCapReactor", "BlueCapFutures", "TestBasics",
                "TestSupport",
            ],
            swiftSettings: strict),
        // What the documents declare and show; Documentation/reference/Conformance.md says what is tested where.
        .testTarget(
            name: "ConformanceTests", dependencies: ["BlueCapKit", "BlueZSimulator", "Bluejay", "TestSupport"],
            exclude: ["documented-items.txt"], swiftSettings: strict),
        // The same in the language mode the documents were written for (`Documented` is a link).
        .testTarget(
            name: "Swift5Tests",
            dependencies: ["BlueCapFutures", "BlueCapKit", "BlueZSimulator", "Bluejay", "TestSupport"],
            swiftSettings: [.treatAllWarnings(as: .error), .swiftLanguageMode(.v5)]),
        .testTarget(
            name: "RadioTests",
            dependencies: [
                "BlueCapKit", "BlueZSimulator", "CoreBluetooth", "CoreBluetoothPrograms", "HeartRateMonitorExample",
                "TestSupport",
            ],
            swiftSettings: strict),
    ]
}
