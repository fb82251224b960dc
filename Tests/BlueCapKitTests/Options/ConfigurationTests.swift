import Foundation
import Logging
import XCTest

@testable import BlueCapKit

/// Each key of the documents' dictionaries is a property of a configuration, and Documentation/Options.md names both.
final class ConfigurationTests: XCTestCase {
    private struct Row<Options> {
        let key: String
        let property: String
        let value: Any
        let set: (inout Options) -> Void
        /// A value of the wrong type or range.
        let wrong: Any
    }

    private let central: [Row<CentralManager.Configuration>] = [
        Row(
            key: "CentralManagerOptionAdapterKey", property: "adapter", value: "hci1", set: { $0.adapter = "hci1" },
            wrong: 1),
        Row(
            key: "CentralManagerOptionBusAddressKey", property: "busAddress", value: "unix:path=/x",
            set: { $0.busAddress = "unix:path=/x" }, wrong: 1),
        Row(
            key: "CentralManagerOptionMaximumPeripheralsKey", property: "maximumPeripherals", value: 5,
            set: { $0.maximumPeripherals = 5 }, wrong: 0),
        Row(
            key: "CentralManagerOptionPairingPolicyKey", property: "pairingPolicy", value: "justWorks",
            set: { $0.pairingPolicy = .justWorks }, wrong: "sometimes"),
        Row(
            key: "CentralManagerOptionKeepsLinksKey", property: "keepsLinks", value: true,
            set: { $0.keepsLinks = true },
            wrong: "yes"),
        Row(
            key: CBCentralManagerOptionRestoreIdentifierKey, property: "restoreIdentifier", value: "a",
            set: { $0.restoreIdentifier = "a" }, wrong: ""),
        Row(
            key: "CentralManagerOptionStateDirectoryKey", property: "stateDirectory", value: "/s",
            set: { $0.stateDirectory = "/s" }, wrong: "s"),
        Row(
            key: "CentralManagerOptionLoggerKey", property: "logger", value: Logger(label: "a"),
            set: { $0.logger = Logger(label: "a") }, wrong: "a"),
    ]

    private let scan: [Row<ScanOptions>] = [
        Row(
            key: CBCentralManagerScanOptionAllowDuplicatesKey, property: "allowsDuplicates", value: true,
            set: { $0.allowsDuplicates = true }, wrong: "yes"),
        Row(
            key: "CentralManagerScanOptionRSSIThresholdKey", property: "rssiThreshold", value: -70,
            set: { $0.rssiThreshold = -70 }, wrong: 21),
        Row(
            key: "CentralManagerScanOptionPatternKey", property: "pattern", value: "Str", set: { $0.pattern = "Str" },
            wrong: 1),
        Row(
            key: "CentralManagerScanOptionWatchdogKey", property: "watchdog", value: 5, set: { $0.watchdog = 5 },
            wrong: -1.0),
    ]

    private let peripheral: [Row<PeripheralManager.Configuration>] = [
        Row(
            key: "PeripheralManagerOptionAdapterKey", property: "adapter", value: "hci1", set: { $0.adapter = "hci1" },
            wrong: 1),
        Row(
            key: "PeripheralManagerOptionBusAddressKey", property: "busAddress", value: "unix:path=/x",
            set: { $0.busAddress = "unix:path=/x" }, wrong: 1),
        Row(
            key: "PeripheralManagerOptionPairingPolicyKey", property: "pairingPolicy", value: PairingPolicy.ask,
            set: { $0.pairingPolicy = .ask }, wrong: "sometimes"),
        Row(
            key: CBPeripheralManagerOptionRestoreIdentifierKey, property: "restoreIdentifier", value: "a",
            set: { $0.restoreIdentifier = "a" }, wrong: ""),
        Row(
            key: "PeripheralManagerOptionStateDirectoryKey", property: "stateDirectory", value: "/s",
            set: { $0.stateDirectory = "/s" }, wrong: "s"),
        Row(
            key: "PeripheralManagerOptionLoggerKey", property: "logger", value: Logger(label: "a"),
            set: { $0.logger = Logger(label: "a") }, wrong: "a"),
    ]

    func testEachKeySetsItsPropertyAndAWrongValueIsNamed() {
        check(central, CentralManager.Configuration()) { options in
            let (value, problem) = CentralManager.Configuration.reading(options)
            return (value, problem?.description)
        }
        check(peripheral, PeripheralManager.Configuration()) { options in
            let (value, problem) = PeripheralManager.Configuration.reading(options)
            return (value, problem?.description)
        }
        check(scan, ScanOptions()) { options in
            do { return (try ScanOptions(options), nil) } catch { return (ScanOptions(), "\(error)") }
        }
    }

    /// A configuration is compared by its description, which has all properties.
    private func check<T>(_ rows: [Row<T>], _ defaults: T, _ read: ([String: Any]?) -> (T, String?)) {
        XCTAssertEqual("\(read(nil).0)", "\(defaults)")
        XCTAssertEqual("\(read(["another key": 1]).0)", "\(defaults)")
        for row in rows {
            var expected = defaults
            row.set(&expected)
            XCTAssertNotEqual("\(expected)", "\(defaults)", row.key)
            let (value, problem) = read([row.key: row.value])
            XCTAssertEqual("\(value)", "\(expected)", row.key)
            XCTAssertNil(problem, row.key)
            let (other, refusal) = read([row.key: row.wrong])
            XCTAssertEqual("\(other)", "\(defaults)", row.key)
            XCTAssertEqual(
                refusal?.hasPrefix("The option \(row.key) takes "), true, "\(row.key): \(refusal ?? "accepted")")
        }
    }

    func testTheTableHasEveryProperty() {
        func properties(of value: Any) -> [String] { Mirror(reflecting: value).children.compactMap(\.label).sorted() }
        XCTAssertEqual(central.map(\.property).sorted(), properties(of: CentralManager.Configuration()))
        XCTAssertEqual(peripheral.map(\.property).sorted(), properties(of: PeripheralManager.Configuration()))
        XCTAssertEqual(scan.map(\.property).sorted(), properties(of: ScanOptions()))
    }

    func testThePageNamesTheKeysWithTheirProperties() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Documentation/Options.md")
        let lines = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n")
        let written = lines.compactMap { line -> String? in
            guard let match = line.firstMatch(of: /^\| `(\w+Key)` \| `(\w+)` \|/) else { return nil }
            return "\(match.1) \(match.2)"
        }
        // The page has the names of the constants, the rows above have their values where they are Apple's.
        let names = [
            CBCentralManagerOptionRestoreIdentifierKey: "CBCentralManagerOptionRestoreIdentifierKey",
            CBCentralManagerScanOptionAllowDuplicatesKey: "CBCentralManagerScanOptionAllowDuplicatesKey",
        ]
        let rows =
            central.map { (names[$0.key] ?? $0.key, $0.property) } + scan.map { (names[$0.key] ?? $0.key, $0.property) }
        // The two roles' restore identifiers have one value.
        let others = peripheral.map {
            ($0.property == "restoreIdentifier" ? "CBPeripheralManagerOptionRestoreIdentifierKey" : $0.key, $0.property)
        }
        XCTAssertEqual(written.sorted(), (rows + others).map { "\($0) \($1)" }.sorted())
    }

    func testAConfigurationOutOfRangeIsRefusedLikeADictionary() {
        var configuration = CentralManager.Configuration()
        configuration.maximumPeripherals = 0
        XCTAssertEqual(
            configuration.checked.problem,
            .invalidOption(
                "The option Configuration.maximumPeripherals takes an Int from 1 to 1000000 peripherals, not 0."))
        XCTAssertEqual(configuration.checked.0.maximumPeripherals, 16_384)
        configuration = CentralManager.Configuration()
        configuration.stateDirectory = "relative"
        XCTAssertNotNil(configuration.checked.problem)
        var serving = PeripheralManager.Configuration()
        serving.restoreIdentifier = ""
        XCTAssertNotNil(serving.checked.problem)
        serving.restoreIdentifier = "a"
        XCTAssertNil(serving.checked.problem)
        XCTAssertEqual("\(serving.checked.0)", "\(serving)")
        XCTAssertThrowsError(try ScanRequest(services: nil, options: ScanOptions(rssiThreshold: 21)))
        XCTAssertThrowsError(try ScanRequest(services: nil, options: ScanOptions(watchdog: .infinity)))
        XCTAssertEqual(try ScanRequest(services: nil, options: ScanOptions(watchdog: 0)).watchdog, 0)
    }
}
