import Logging
import XCTest

@testable import BlueCapKit

/// Each key of the documents' dictionaries is a property of a configuration, and Documentation/reference/Options.md names both.
final class ConfigurationTests: XCTestCase {
    private struct Row<Options> {
        let key: String
        let property: String
        let value: Any
        /// A value of the wrong type or range.
        let wrong: Any
        let set: (inout Options) -> Void

        init(_ key: String, _ property: String, _ value: Any, wrong: Any, set: @escaping (inout Options) -> Void) {
            (self.key, self.property, self.value, self.wrong, self.set) = (key, property, value, wrong, set)
        }
    }

    private let central: [Row<CentralManager.Configuration>] = [
        Row("CentralManagerOptionAdapterKey", "adapter", "hci1", wrong: 1) { $0.adapter = "hci1" },
        Row("CentralManagerOptionBusAddressKey", "busAddress", "unix:path=/x", wrong: 1) {
            $0.busAddress = "unix:path=/x"
        },
        Row("CentralManagerOptionMaximumPeripheralsKey", "maximumPeripherals", 5, wrong: 0) {
            $0.maximumPeripherals = 5
        },
        Row("CentralManagerOptionPairingPolicyKey", "pairingPolicy", "justWorks", wrong: "sometimes") {
            $0.pairingPolicy = .justWorks
        },
        Row("CentralManagerOptionKeepsLinksKey", "keepsLinks", true, wrong: "yes") { $0.keepsLinks = true },
        Row(CBCentralManagerOptionRestoreIdentifierKey, "restoreIdentifier", "a", wrong: "") {
            $0.restoreIdentifier = "a"
        },
        Row("CentralManagerOptionStateDirectoryKey", "stateDirectory", "/s", wrong: "s") { $0.stateDirectory = "/s" },
        Row("CentralManagerOptionLoggerKey", "logger", Logger(label: "a"), wrong: "a") {
            $0.logger = Logger(label: "a")
        },
    ]

    private let scan: [Row<ScanOptions>] = [
        Row(CBCentralManagerScanOptionAllowDuplicatesKey, "allowsDuplicates", true, wrong: "yes") {
            $0.allowsDuplicates = true
        },
        Row("CentralManagerScanOptionRSSIThresholdKey", "rssiThreshold", -70, wrong: 21) { $0.rssiThreshold = -70 },
        Row("CentralManagerScanOptionPatternKey", "pattern", "Str", wrong: 1) { $0.pattern = "Str" },
        Row("CentralManagerScanOptionWatchdogKey", "watchdog", 5, wrong: -1.0) { $0.watchdog = .seconds(5) },
    ]

    private let peripheral: [Row<PeripheralManager.Configuration>] = [
        Row("PeripheralManagerOptionAdapterKey", "adapter", "hci1", wrong: 1) { $0.adapter = "hci1" },
        Row("PeripheralManagerOptionBusAddressKey", "busAddress", "unix:path=/x", wrong: 1) {
            $0.busAddress = "unix:path=/x"
        },
        Row("PeripheralManagerOptionPairingPolicyKey", "pairingPolicy", PairingPolicy.ask, wrong: "sometimes") {
            $0.pairingPolicy = .ask
        },
        Row(CBPeripheralManagerOptionRestoreIdentifierKey, "restoreIdentifier", "a", wrong: "") {
            $0.restoreIdentifier = "a"
        },
        Row("PeripheralManagerOptionStateDirectoryKey", "stateDirectory", "/s", wrong: "s") {
            $0.stateDirectory = "/s"
        },
        Row("PeripheralManagerOptionLoggerKey", "logger", Logger(label: "a"), wrong: "a") {
            $0.logger = Logger(label: "a")
        },
    ]

    func testEachKeySetsItsPropertyAndAWrongValueIsNamed() {
        check(central, CentralManager.Configuration()) { CentralManager.Configuration.reading($0) }
        check(peripheral, PeripheralManager.Configuration()) { PeripheralManager.Configuration.reading($0) }
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
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
                "Documentation/reference/Options.md")
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

    @available(*, deprecated)
    func testTheConstantsHaveTheirNamesAsValues() {
        let constants: [String: String] = [
            "CentralManagerOptionAdapterKey": CentralManagerOptionAdapterKey,
            "CentralManagerOptionBusAddressKey": CentralManagerOptionBusAddressKey,
            "CentralManagerOptionMaximumPeripheralsKey": CentralManagerOptionMaximumPeripheralsKey,
            "CentralManagerOptionPairingPolicyKey": CentralManagerOptionPairingPolicyKey,
            "CentralManagerOptionKeepsLinksKey": CentralManagerOptionKeepsLinksKey,
            "CentralManagerOptionStateDirectoryKey": CentralManagerOptionStateDirectoryKey,
            "CentralManagerOptionLoggerKey": CentralManagerOptionLoggerKey,
            "CentralManagerScanOptionRSSIThresholdKey": CentralManagerScanOptionRSSIThresholdKey,
            "CentralManagerScanOptionPatternKey": CentralManagerScanOptionPatternKey,
            "CentralManagerScanOptionWatchdogKey": CentralManagerScanOptionWatchdogKey,
            "PeripheralManagerOptionAdapterKey": PeripheralManagerOptionAdapterKey,
            "PeripheralManagerOptionBusAddressKey": PeripheralManagerOptionBusAddressKey,
            "PeripheralManagerOptionPairingPolicyKey": PeripheralManagerOptionPairingPolicyKey,
            "PeripheralManagerOptionStateDirectoryKey": PeripheralManagerOptionStateDirectoryKey,
            "PeripheralManagerOptionLoggerKey": PeripheralManagerOptionLoggerKey,
        ]
        let keys = central.map(\.key) + scan.map(\.key) + peripheral.map(\.key)
        for key in keys where !key.hasPrefix("kCB") { XCTAssertEqual(constants[key], key) }
    }

    // MARK: Invalid configurations

    /// The invalid properties, each with what an error says of it.
    private func errors<T>(_ configurations: [T], _ create: (T) throws -> Void) -> [String] {
        configurations.map { configuration in
            do {
                try create(configuration)
                return "none"
            } catch {
                guard let error = error as? ConfigurationError else { return "\(error)" }
                XCTAssertEqual(error.description, "The configuration's \(error.property) \(error.reason).")
                return "\(error.property) \(error.reason)"
            }
        }
    }

    func testAnInvalidConfigurationIsRefusedAtOnce() {
        let bus = "loopback:name=none"
        let central: [CentralManager.Configuration] = [
            .init(busAddress: ""), .init(busAddress: "/run/dbus/system_bus_socket"), .init(adapter: ""),
            .init(adapter: "hci 0"), .init(adapter: "/org/bluez/hci0"), .init(restoreIdentifier: ""),
            .init(stateDirectory: "relative"), .init(maximumPeripherals: 0), .init(maximumPeripherals: 1_000_001),
            .init(busAddress: bus, adapter: "00:1a:7d:DA:71:13", maximumPeripherals: 1_000_000), .init(busAddress: bus),
        ]
        XCTAssertEqual(
            errors(central) { _ = try CentralManager(configuration: $0) },
            [
                "busAddress takes a D-Bus address, such as unix:path=/run/bus, not an empty one",
                "busAddress takes a D-Bus address, such as unix:path=/run/bus, not /run/dbus/system_bus_socket",
                "adapter takes the name of an adapter, such as hci0, or its address, not an empty one",
                "adapter takes the name of an adapter, such as hci0, or its address, not hci 0",
                "adapter takes the name of an adapter, such as hci0, or its address, not /org/bluez/hci0",
                "restoreIdentifier takes a String that is not empty, not an empty one",
                "stateDirectory takes a String with an absolute path, not relative",
                "maximumPeripherals takes an Int from 1 to 1000000 peripherals, not 0",
                "maximumPeripherals takes an Int from 1 to 1000000 peripherals, not 1000001", "none", "none",
            ])
        let serving: [PeripheralManager.Configuration] = [
            .init(busAddress: "unix"), .init(adapter: ":"), .init(restoreIdentifier: ""), .init(stateDirectory: ""),
            .init(busAddress: bus, adapter: "hci0"),
        ]
        XCTAssertEqual(
            errors(serving) { _ = try PeripheralManager(configuration: $0) },
            [
                "busAddress takes a D-Bus address, such as unix:path=/run/bus, not unix",
                "adapter takes the name of an adapter, such as hci0, or its address, not :",
                "restoreIdentifier takes a String that is not empty, not an empty one",
                "stateDirectory takes a String with an absolute path, not an empty one", "none",
            ])
    }

    /// The error has its type, so that a `catch` needs no cast.
    func testTheErrorOfAManagerIsTyped() {
        do throws(ConfigurationError) {
            _ = try CentralManager(configuration: .init(adapter: ""))
            XCTFail("The adapter was accepted.")
        } catch {
            XCTAssertEqual(error.property, "adapter")
        }
    }

    /// What a program of Core Bluetooth gets from its default configuration.
    func testADictionaryReplacesWhatItHasOfAConfiguration() {
        let base = CentralManager.Configuration(adapter: "hci1", pairingPolicy: .justWorks)
        let read = CentralManager.Configuration.reading(["CentralManagerOptionAdapterKey": "hci2"], over: base)
        XCTAssertEqual("\(read.0)", "\(CentralManager.Configuration(adapter: "hci2", pairingPolicy: .justWorks))")
        XCTAssertNil(read.problem)
        let invalid = CentralManager.Configuration.reading([:], over: .init(maximumPeripherals: -1))
        XCTAssertEqual("\(invalid.0)", "\(CentralManager.Configuration())")
        XCTAssertEqual(
            invalid.problem,
            "The configuration's maximumPeripherals takes an Int from 1 to 1000000 peripherals, not -1.")
    }

    func testOptionsOfAScanOutOfRangeAreRefused() {
        func problem(_ options: ScanOptions) -> CentralManagerError? {
            do throws(CentralManagerError) {
                _ = try ScanRequest(services: nil, options: options)
                return nil
            } catch {
                return error
            }
        }
        XCTAssertEqual(
            problem(ScanOptions(rssiThreshold: 21)),
            .invalidOption("The scan's rssiThreshold takes an Int from -127 to 20 dBm, not 21."))
        XCTAssertEqual(
            problem(ScanOptions(watchdog: .milliseconds(-1))),
            .invalidOption("The scan's watchdog takes zero or more seconds, not -0.001 seconds."))
        XCTAssertEqual(try ScanRequest(services: nil, options: ScanOptions(watchdog: .zero)).watchdog, 0)
        XCTAssertEqual(try ScanRequest(services: nil, options: ScanOptions(watchdog: nil)).watchdog, 0)
        XCTAssertEqual(try ScanRequest(services: nil, options: ScanOptions()).watchdog, 90)
    }
}
