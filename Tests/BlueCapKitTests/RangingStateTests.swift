import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapKit

final class RangingStateTests: XCTestCase {
    private let floor = CBUUID(string: "F7826DA6-4FA2-4E98-8024-BC5B71E0893E").nsuuid
    private var beacon: Beacon { .iBeacon(IBeacon(uuid: floor, major: 1, minor: 7, measuredPower: -59)) }
    private let telemetry = Beacon.eddystoneTLM(Eddystone.TLM(advertisementCount: 1, tenthsOfUptime: 10))

    private var track: BeaconTrack?

    private func ranging(_ filters: [BeaconFilter] = [], smoothing: TimeInterval = 0) -> Ranging {
        Ranging(filters: filters, model: DistanceModel(), timeConstant: smoothing)
    }

    private func time(_ seconds: Double) -> Instant { Instant.origin.advanced(by: seconds) }

    func testASightingHasADistance() throws {
        let ranging = ranging()
        let ranged = try XCTUnwrap(ranging.receive(&track, [beacon], rssi: -79, at: time(0)).first)
        XCTAssertEqual(ranged.beacon, beacon)
        XCTAssertEqual(try XCTUnwrap(ranged.distance).metres, 10, accuracy: 1e-9)
    }

    func testStrengthsAreAveragedAndTheUncertaintyFalls() throws {
        let ranging = ranging(smoothing: 2)
        let first = try XCTUnwrap(ranging.receive(&track, [beacon], rssi: -59, at: time(0)).first)
        var last = first
        for step in 1...100 {
            let ranged = ranging.receive(
                &track, [beacon], rssi: step % 2 == 0 ? -55 : -63, at: time(Double(step) * 0.1))
            last = try XCTUnwrap(ranged.first)
        }
        XCTAssertEqual(try XCTUnwrap(last.smoothedRSSI), -59, accuracy: 0.5)
        XCTAssertEqual(last.rssi, -55)
        XCTAssertLessThan(try XCTUnwrap(last.distance).factor, try XCTUnwrap(first.distance).factor)
    }

    func testTelemetryIsMeasuredByTheOtherFramesOfItsPeripheral() throws {
        let ranging = ranging()
        XCTAssertNil(try XCTUnwrap(ranging.receive(&track, [telemetry], rssi: -59, at: time(0)).first).distance)
        let link = Beacon.eddystoneURL(try XCTUnwrap(Eddystone.URL("https://a.com", powerAtZeroMetres: -18)))
        _ = ranging.receive(&track, [link], rssi: -59, at: time(1))
        let ranged = try XCTUnwrap(ranging.receive(&track, [telemetry], rssi: -59, at: time(2)).first)
        XCTAssertEqual(try XCTUnwrap(ranged.distance).metres, 1, accuracy: 1e-9)
    }

    func testAnUnknownStrengthGivesNoDistanceAndHarmsNoAverage() throws {
        let ranging = ranging(smoothing: 2)
        for rssi in [nil, 127] {
            let ranged = try XCTUnwrap(ranging.receive(&track, [beacon], rssi: rssi, at: time(0)).first)
            XCTAssertNil(ranged.rssi)
            XCTAssertNil(ranged.distance)
        }
        XCTAssertEqual(ranging.receive(&track, [beacon], rssi: -70, at: time(1)).first?.smoothedRSSI, -70)
    }

    func testOnlyWhatIsAskedForIsReportedAndRemembered() {
        let ranging = ranging([.iBeacon(floor, major: 2), .kind(.eddystoneURL)])
        XCTAssertEqual(ranging.receive(&track, [beacon, telemetry], rssi: -59, at: time(0)), [])
        XCTAssertNil(track)
        let other = Beacon.iBeacon(IBeacon(uuid: floor, major: 2, minor: 1))
        XCTAssertEqual(ranging.receive(&track, [beacon, other], rssi: -59, at: time(1)).map(\.beacon), [other])
        XCTAssertNotNil(track)
    }
}

extension Ranging {
    fileprivate func receive(
        _ track: inout BeaconTrack?, _ beacons: [Beacon], rssi: Int?, at now: Instant
    ) -> [RangedBeacon] {
        received(beacons, rssi: rssi, at: now, in: ScanNumber(rawValue: 1), track: &track)
    }
}
