// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Managers as services of swift-service-lifecycle, apart from the library, so that its users do not fetch that package.
let package = Package(
    name: "BlueCapServiceLifecycle",
    products: [.library(name: "BlueCapServiceLifecycle", targets: ["BlueCapServiceLifecycle"])],
    dependencies: [
        .package(name: "BlueCap", path: ".."),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .target(
            name: "BlueCapServiceLifecycle",
            dependencies: [
                .product(name: "BlueCapKit", package: "BlueCap"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ], swiftSettings: strict),
        .executableTarget(
            name: "BatteryService",
            dependencies: [
                "BlueCapServiceLifecycle",
                .product(name: "BlueCapKit", package: "BlueCap"),
                .product(name: "BlueCapMetrics", package: "BlueCap"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], path: "Examples/Battery", swiftSettings: strict),
        .testTarget(
            name: "BlueCapServiceLifecycleTests",
            dependencies: [
                "BlueCapServiceLifecycle",
                .product(name: "BlueCapKit", package: "BlueCap"),
                .product(name: "BlueZSimulator", package: "BlueCap"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
            ], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
