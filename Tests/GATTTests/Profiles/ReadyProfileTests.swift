import BlueCapGATT
import BlueCapProfiles
import TestBasics
import XCTest

/// Laws that hold for every ready-made profile, checked with random bytes.
final class ReadyProfileTests: RandomTestCase {
    private var services: [ServiceProfile] {
        TISensorTag.serviceProfiles + BluetoothSIG.serviceProfiles + Nordic.serviceProfiles + Gnosus.serviceProfiles
    }

    func testAManagerCanKnowThemAll() {
        let manager = ProfileManager.ready

        XCTAssertEqual(manager.services.count, services.count)
        XCTAssertEqual(manager.service(CBUUID(string: "180D"))?.name, "Heart Rate")
        XCTAssertEqual(manager.service(tag: "TI Sensor Tag").count, 8)
        XCTAssertEqual(manager.service(tag: "Nordic").count, 5)
        for service in services { XCTAssertFalse(service.characteristics.isEmpty, service.name) }
    }

    func testNamesOfTheSIGsServicesAreThoseOfTheAssignedNumbers() {
        for service in BluetoothSIG.serviceProfiles {
            XCTAssertEqual(AssignedNumbers.serviceName(service.uuid), service.name)
        }
    }

    func testInitialValuesAndMenusAreUnderstood() {
        for profile in services.flatMap(\.characteristics) {
            if let value = profile.initialValue { XCTAssertNotNil(profile.stringValue(value), profile.name) }
            for text in profile.stringValues {
                let data = profile.data(fromString: [profile.name: text])
                XCTAssertEqual(data.flatMap { profile.stringValue($0) }, [profile.name: text])
            }
        }
    }

    func testRandomBytesNeverTrapAndWhatIsReadCanBeTyped() {
        var random = TestRandom(self)
        for profile in services.flatMap(\.characteristics) {
            var understood = 0
            for round in 0..<50_000 {
                // Profiles of which few bytes are a value, such as a date, get more.
                if round >= 1_080, understood > 0 { break }
                // Sixty values of each short length, half of them of small numbers, which are flags and cases.
                let mask: UInt64 = (round / 18).isMultiple(of: 2) ? 0x07 : 0xFF
                let bytes = Data((0..<round % 18).map { _ in UInt8(truncatingIfNeeded: random.next() & mask) })
                guard let text = profile.stringValue(bytes) else { continue }
                understood += 1
                let typed = profile.data(fromString: text)
                XCTAssertNotNil(typed, "\(profile.name): \(text)")
                XCTAssertEqual(typed.flatMap { profile.stringValue($0) }, text, "\(profile.name)")
                for key in text.keys {
                    var spoiled = text
                    spoiled[key] = "?"
                    _ = profile.data(fromString: spoiled)
                    spoiled[key] = nil
                    _ = profile.data(fromString: spoiled)
                }
            }
            XCTAssertGreaterThan(understood, 0, "\(profile.name)")
        }
    }
}
