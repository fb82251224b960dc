import XCTest

@testable import BlueCapKit

final class ScanRequestTests: XCTestCase {
    private let heartRate = CBUUID(string: "180D")

    private func accepts(
        _ options: [String: Any], services: [CBUUID]? = nil, advertised: [CBUUID] = [], rssi: Int? = -50,
        name: String? = "Strap"
    ) throws -> Bool {
        try ScanRequest(services: services, options: ScanOptions(options))
            .accepts(services: advertised, rssi: rssi, name: name, address: "C0:26:DF:00:00:01")
    }

    private func problem(_ options: [String: Any]) -> String? {
        do {
            _ = try ScanRequest(services: nil, options: ScanOptions(options))
            return nil
        } catch {
            return error.description
        }
    }

    func testWithoutFiltersEverybodyIsAccepted() throws {
        XCTAssertTrue(try accepts([:], rssi: nil, name: nil))
    }

    func testOneOfTheServicesMustBeAdvertised() throws {
        XCTAssertTrue(try accepts([:], services: [CBUUID(string: "180F"), heartRate], advertised: [heartRate]))
        XCTAssertFalse(try accepts([:], services: [heartRate], advertised: [CBUUID(string: "180F")]))
        XCTAssertFalse(try accepts([:], services: [heartRate]))
    }

    func testAnEmptyListOfServicesAsksForEverybody() throws {
        XCTAssertTrue(try accepts([:], services: []))
    }

    func testAnUnknownStrengthIsNeverStrongEnough() throws {
        let options = ["CentralManagerScanOptionRSSIThresholdKey": -70]
        XCTAssertTrue(try accepts(options, rssi: -70))
        XCTAssertFalse(try accepts(options, rssi: -71))
        XCTAssertFalse(try accepts(options, rssi: nil))
    }

    func testAPatternIsAPrefixOfNameOrAddress() throws {
        XCTAssertTrue(try accepts(["CentralManagerScanOptionPatternKey": "Str"]))
        XCTAssertFalse(try accepts(["CentralManagerScanOptionPatternKey": "str"]))
        XCTAssertTrue(try accepts(["CentralManagerScanOptionPatternKey": "C0:26:DF"]))
        XCTAssertTrue(try accepts(["CentralManagerScanOptionPatternKey": "c0:26:df"]))
        XCTAssertFalse(try accepts(["CentralManagerScanOptionPatternKey": "C1:"], name: nil))
    }

    func testWrongOptionsAreNamedWithWhatTheyTake() {
        XCTAssertEqual(
            problem(["CentralManagerScanOptionRSSIThresholdKey": "-70"]),
            "The option CentralManagerScanOptionRSSIThresholdKey takes an Int from -127 to 20 dBm, not -70.")
        XCTAssertNotNil(problem(["CentralManagerScanOptionRSSIThresholdKey": 200]))
        XCTAssertNotNil(problem(["CentralManagerScanOptionPatternKey": 7]))
        XCTAssertNotNil(problem(["CentralManagerScanOptionWatchdogKey": -1.0]))
        XCTAssertNotNil(problem([CBCentralManagerScanOptionAllowDuplicatesKey: "yes"]))
    }

    func testTheWatchdogCanBeSetAndSwitchedOff() throws {
        XCTAssertEqual(try ScanRequest(services: nil, options: ScanOptions(nil)).watchdog, 90)
        XCTAssertEqual(
            try ScanRequest(services: nil, options: ScanOptions(["CentralManagerScanOptionWatchdogKey": 5])).watchdog, 5
        )
        XCTAssertEqual(
            try ScanRequest(services: nil, options: ScanOptions(["CentralManagerScanOptionWatchdogKey": 0])).watchdog, 0
        )
    }
}
