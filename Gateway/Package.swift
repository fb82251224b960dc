// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A gateway between Bluetooth LE and a message broker, apart from the library, so that its users do not fetch what it needs.
let package = Package(
    name: "BlueCapGateway",
    dependencies: [
        .package(name: "BlueCap", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),
        // Values and decisions: configuration, topics, payloads, claims. No input and output.
        .target(
            name: "GatewayCore",
            dependencies: [.product(name: "BlueCapKit", package: "BlueCap"), .product(name: "Yams", package: "Yams")],
            swiftSettings: strict),
        // What the broker has not acknowledged, in SQLite.
        .target(
            name: "GatewayStore",
            dependencies: [
                "GatewayCore", .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: strict),
        // The connection to the broker, over libmosquitto.
        .target(
            name: "GatewayBroker",
            dependencies: ["CMosquitto", "GatewayCore", .product(name: "Logging", package: "swift-log")],
            swiftSettings: strict),
        // The page, its events, and the metrics, over HTTP.
        .target(
            name: "GatewayPage",
            dependencies: [
                "GatewayCore", .product(name: "FlyingSocks", package: "FlyingFox"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
            ], resources: [.embedInCode("Page.html")], swiftSettings: strict),
        // The library's side: a scan that goes on, links that are kept, values that are taken.
        .target(
            name: "GatewayRadio", dependencies: ["GatewayCore", .product(name: "BlueCapKit", package: "BlueCap")],
            swiftSettings: strict),
        // What happens at each event, and the program's parts together.
        .target(
            name: "GatewayProgram",
            dependencies: [
                "GatewayBroker", "GatewayCore", "GatewayPage", "GatewayRadio", "GatewayStore",
                .product(name: "BlueCapCipher", package: "BlueCap"),
                .product(name: "BlueCapKit", package: "BlueCap"),
                .product(name: "BlueCapMetrics", package: "BlueCap"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ], swiftSettings: strict),
        .executableTarget(
            name: "bluecap-gateway",
            dependencies: [
                "GatewayCore", "GatewayPage", "GatewayProgram",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], swiftSettings: strict),
        // Brokers, subscribers and directories for tests.
        .target(
            name: "GatewayTestSupport", dependencies: ["GatewayBroker", "GatewayCore"],
            path: "Tests/GatewayTestSupport", swiftSettings: strict),
        .testTarget(
            name: "GatewayCoreTests", dependencies: ["GatewayCore", "GatewayTestSupport"], swiftSettings: strict),
        // A program that GatewayStoreTests ends at random moments.
        .executableTarget(
            name: "outbox-writer", dependencies: ["GatewayCore", "GatewayStore"], path: "Tests/outbox-writer",
            swiftSettings: strict),
        // What `make gateway-scale` measures with: a simulated BlueZ for each gateway.
        .executableTarget(
            name: "scale-simulators", dependencies: [.product(name: "BlueZSimulator", package: "BlueCap")],
            path: "Benchmarks/scale-simulators", swiftSettings: strict),
        .testTarget(
            name: "GatewayStoreTests",
            dependencies: [
                "GatewayCore", "GatewayStore", "GatewayTestSupport", "outbox-writer",
                .product(name: "GRDB", package: "GRDB.swift"), .product(name: "Logging", package: "swift-log"),
            ], swiftSettings: strict),
        .testTarget(
            name: "GatewayBrokerTests", dependencies: ["GatewayBroker", "GatewayCore", "GatewayTestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "GatewayRadioTests",
            dependencies: [
                "GatewayCore", "GatewayRadio", "GatewayTestSupport",
                .product(name: "BlueCapKit", package: "BlueCap"), .product(name: "BlueZSimulator", package: "BlueCap"),
            ], swiftSettings: strict),
        .testTarget(
            name: "GatewayProgramTests",
            dependencies: [
                "GatewayCore", "GatewayPage", "GatewayProgram", "GatewayRadio", "GatewayStore", "GatewayTestSupport",
                "bluecap-gateway",
                .product(name: "BlueZSimulator", package: "BlueCap"),
            ], swiftSettings: strict),
        .testTarget(
            name: "GatewayPageTests",
            dependencies: [
                "GatewayCore", "GatewayPage", "GatewayTestSupport",
                .product(name: "CoreMetrics", package: "swift-metrics"),
            ], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
