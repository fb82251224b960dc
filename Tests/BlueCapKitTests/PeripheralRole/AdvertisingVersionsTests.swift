import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// What can be advertised with each version of BlueZ.
final class AdvertisingVersionsTests: PeripheralStage {
    private func manager(_ bluez: BlueZVersion) -> PeripheralManager {
        simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        return makeManager()
    }

    /// 3 bytes of flags and 60 of manufacturer data.
    private var long: AdvertisingData {
        var data = AdvertisingData(localName: "Kitchen")
        data.manufacturerData = [0xFFFF: Data(count: 56)]
        return data
    }

    func testALongAdvertisementIsExtendedWhereBlueZCanAndRefusedElsewhere() throws {
        for (bluez, isLong) in [(BlueZVersion.v5_66, false), (.v5_72, false), (.v5_82, true), (.v5_87, true)] {
            let manager = manager(bluez)
            let started = manager.startAdvertising(long)
            if isLong {
                let running = try value(of: started)
                let sent = try XCTUnwrap(simulator.advertisements.first)
                XCTAssertEqual(sent.data.count, 3 + 60 + 9, "The name is inside.")
                XCTAssertEqual(sent.data.count, long.byteCount)
                XCTAssertEqual(sent.scanResponse, [])
                XCTAssertEqual(running.notes, [.extended])
                XCTAssertNoThrow(try long.check(try value(of: manager.advertisingLimits())))
            } else {
                XCTAssertEqual(
                    managerError(of: started), .advertisementTooLong(field: .manufacturerData, by: 3 + 60 - 31),
                    "\(bluez)")
            }
            XCTAssertThrowsError(try long.check(), "It does not fit every adapter.")
        }
    }

    func testALongScanResponseIsRefusedWhereTheAdvertisementIsNotExtended() {
        for bluez in [BlueZVersion.v5_66, .v5_82] {
            let manager = manager(bluez)
            XCTAssertEqual(
                managerError(of: manager.startAdvertising(String(repeating: "n", count: 40))),
                .advertisementTooLong(field: .localName, by: 11), "\(bluez)")
        }
    }

    func testWhatFitsNoAdapterIsRefusedAtOnce() {
        let manager = unreadyManager()
        var data = long
        data.manufacturerData[1] = Data(count: 200)
        XCTAssertEqual(
            managerError(of: manager.startAdvertising(data), within: 0.01),
            .advertisementTooLong(field: .manufacturerData, by: data.byteCount - 251))
    }

    func testTheScanResponseHasMoreFieldsFrom580On() throws {
        var data = AdvertisingData(localName: "Hi")
        data.scanResponse.serviceUUIDs = [CBUUID(string: "180F")]
        data.scanResponse.manufacturerData = [0x1234: Data([7])]
        data.scanResponse.serviceData = [CBUUID(string: "180F"): Data([80])]
        XCTAssertEqual(data.scanResponseByteCount, 4 + 4 + 5 + 5)
        for (bluez, isThere) in [(BlueZVersion.v5_66, false), (.v5_72, false), (.v5_82, true), (.v5_87, true)] {
            let manager = manager(bluez)
            let running = try value(of: manager.startAdvertising(data))
            let sent = try XCTUnwrap(simulator.advertisements.first)
            XCTAssertEqual(sent.scanResponse.count, isThere ? data.scanResponseByteCount : 4, "\(bluez)")
            XCTAssertEqual(running.notes, isThere ? [] : [.scanResponseIgnored], "\(bluez)")
        }
    }

    func testAScanResponseThatIsTooLongIsNamed() {
        var data = AdvertisingData(localName: "Hi")
        data.scanResponse.manufacturerData = [0x1234: Data(count: 24)]
        XCTAssertThrowsError(try data.check()) { error in
            XCTAssertEqual(error as? PeripheralManagerError, .advertisementTooLong(field: .scanResponse, by: 1))
        }
        data.secondaryChannel = .oneMegabit
        data.scanResponse.manufacturerData = [0x1234: Data(count: 1)]
        XCTAssertThrowsError(try data.check()) { error in
            guard case .invalidAdvertisement? = error as? PeripheralManagerError else { return XCTFail("\(error)") }
        }
        data.kind = .broadcast
        XCTAssertNoThrow(try data.check())
    }

    func testTheScanResponseOutlivesTheProcess() throws {
        var data = AdvertisingData(localName: "Hi")
        data.scanResponse.serviceUUIDs = [CBUUID(string: "180F")]
        data.scanResponse.manufacturerData = [0x1234: Data([7])]
        data.scanResponse.serviceData = [CBUUID(string: "180F"): Data([80])]
        var state = PeripheralRestorationState()
        state.advertisements = [.init(data: data, isMain: false)]
        let kept = try PeripheralRestorationState(decoding: state.encoded(for: "test"), for: "test")
        XCTAssertEqual(kept.advertisements.map(\.data), [data])
    }
}
