import BlueCapGATT
import XCTest

@testable import BlueCapBlueZ

final class DiscoveryFilterTests: XCTestCase {
    private let heartRate = CBUUID(string: "180D")
    private let battery = CBUUID(string: "180F")

    func testServicesOfAllScansAreDiscovered() {
        let union = DiscoveryFilter.union([DiscoveryFilter(uuids: [battery]), DiscoveryFilter(uuids: [heartRate])])
        XCTAssertEqual(union.uuids, [heartRate, battery])
    }

    func testOneScanWithoutServicesMakesAllDevicesWelcome() {
        let union = DiscoveryFilter.union([
            DiscoveryFilter(uuids: [battery]), DiscoveryFilter(), DiscoveryFilter(uuids: [heartRate]),
        ])
        XCTAssertEqual(union.uuids, [])
    }

    func testTheWeakestThresholdCounts() {
        let union = DiscoveryFilter.union([-60, -80, -70].map { DiscoveryFilter(rssi: $0) })
        XCTAssertEqual(union.rssi, -80)
    }

    func testOneScanWithoutThresholdLiftsIt() {
        XCTAssertNil(DiscoveryFilter.union([DiscoveryFilter(rssi: -60), DiscoveryFilter()]).rssi)
    }

    func testAPatternStaysOnlyWhenAllAgree() {
        let ruuvi = DiscoveryFilter(pattern: "Ruuvi")
        XCTAssertEqual(DiscoveryFilter.union([ruuvi, ruuvi]).pattern, "Ruuvi")
        XCTAssertNil(DiscoveryFilter.union([ruuvi, DiscoveryFilter(pattern: "Polar")]).pattern)
        XCTAssertNil(DiscoveryFilter.union([ruuvi, DiscoveryFilter()]).pattern)
        XCTAssertNil(DiscoveryFilter.union([DiscoveryFilter(), ruuvi]).pattern)
    }

    func testDuplicatesAreReportedWhenOneScanWantsThem() {
        XCTAssertTrue(
            DiscoveryFilter.union([DiscoveryFilter(), DiscoveryFilter(reportsDuplicateData: true)])
                .reportsDuplicateData)
        XCTAssertFalse(DiscoveryFilter.union([DiscoveryFilter()]).reportsDuplicateData)
    }

    func testOrderAndRepetitionDoNotMakeAnotherFilter() {
        XCTAssertEqual(
            DiscoveryFilter(uuids: [battery, heartRate, battery]), DiscoveryFilter(uuids: [heartRate, battery]))
    }

    func testAThresholdOutsideWhatTheDaemonAcceptsIsBroughtIntoIt() {
        XCTAssertEqual(DiscoveryFilter(rssi: -1000).rssi, -127)
        XCTAssertEqual(DiscoveryFilter(rssi: 127).rssi, 20)
    }

    func testAnEmptyPatternIsNone() { XCTAssertNil(DiscoveryFilter(pattern: "").pattern) }

    func testTheUnionOfOneIsItselfAndOfNoneEverything() {
        let one = DiscoveryFilter(uuids: [battery], rssi: -70, pattern: "A", reportsDuplicateData: true)
        XCTAssertEqual(DiscoveryFilter.union([one]), one)
        XCTAssertEqual(DiscoveryFilter.union([DiscoveryFilter]()), DiscoveryFilter())
    }
}
