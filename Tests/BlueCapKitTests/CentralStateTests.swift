import BlueCapGATT
import BlueCapReactor
import BlueCapDBus
import XCTest

@testable import BlueCapKit
@testable import BlueCapBlueZ

final class CentralStateTests: XCTestCase {
    private var state = CentralState(maximumPeripherals: 4)
    private let date = Date(timeIntervalSince1970: 1_000)

    private func time(_ seconds: Double) -> Instant { Instant(nanoseconds: 0).advanced(by: seconds) }

    private func turnOn() {
        _ = state.event(.reached(.ready))
        _ = state.event(.adapterPower(true))
    }

    /// Begins a scan and gives its number.
    private func scan(_ change: (inout ScanRequest) -> Void = { _ in }) throws -> ScanNumber {
        var request = ScanRequest()
        change(&request)
        return try state.startScan(request, timeout: .infinity).get()
    }

    private func device(_ number: UInt64, rssi: Int16? = -50, _ change: (inout Device1) -> Void = { _ in }) -> Device1 {
        var device = Device1(address: BluetoothAddress(rawValue: number))
        if let rssi {
            device.rawRSSI = rssi
            device.fields.insert(.rssi)
        }
        change(&device)
        return device
    }

    private func receive(
        _ device: Device1, fields: Device1.Fields = [.rssi], isAdvertised: Bool = true, at seconds: Double = 0
    ) -> [Order.Action] {
        Orders.given {
            state.deviceChanged(
                PeripheralKey(device), ObjectKey(rawValue: device.address.rawValue), device, fields: fields,
                isAdvertised: isAdvertised, at: time(seconds), date: date, into: &$0)
        }
    }

    private func key(_ number: UInt64) -> PeripheralKey { PeripheralKey(rawValue: number) }

    // MARK: Addresses that bonds change

    func testAnAliasOfAnAddressNeverTakesOverAnotherPeripheral() throws {
        turnOn()
        _ = try scan()
        let hidden = device(0x51) { $0.addressType = .random }
        let identity = device(7)
        _ = receive(hidden)
        _ = receive(identity)
        let adapter = try XCTUnwrap(ObjectKey(adapter: 0))
        let source = try XCTUnwrap(ObjectKey(device: hidden.address, on: adapter))
        XCTAssertEqual(state.key(of: source, at: PeripheralKey(identity)), PeripheralKey(identity))
        // An address without a peripheral of its own.
        let free = PeripheralKey(device(8))
        XCTAssertEqual(state.key(of: source, at: free), PeripheralKey(hidden))
        XCTAssertEqual(state.presentAddress(of: PeripheralKey(hidden)), free)
    }

    // MARK: Beginning and end of a scan

    func testAScanNeedsPower() {
        func refusal() -> CentralManagerError? {
            switch state.startScan(ScanRequest(), timeout: .infinity) {
            case .success: nil
            case .failure(let error): error
            }
        }
        XCTAssertEqual(refusal(), .isPoweredOff)
        _ = state.event(.reached(.noDaemon))
        XCTAssertEqual(refusal(), .unsupported)
        _ = state.event(.reached(.refused(DBusError(name: "org.freedesktop.DBus.Error.Failed", message: ""))))
        XCTAssertEqual(refusal(), .unauthorized)
        _ = state.event(.reached(.ready))
        _ = state.event(.adapterPower(false))
        XCTAssertEqual(refusal(), .isPoweredOff)
        _ = state.event(.adapterPower(true))
        XCTAssertNil(refusal())
        XCTAssertEqual(refusal(), .isScanning)
    }

    func testATimeOutEndsItsScanWithTheDocumentedError() throws {
        turnOn()
        var orders = Orders()
        let scan = try state.startScan(ScanRequest(), timeout: 2, into: &orders).get()
        let effects = orders.pending.map(\.action)
        XCTAssertTrue(effects.contains(.startTimer(.scanTimeout(scan), 2)))
        XCTAssertEqual(
            state.fired(.scanTimeout(scan), at: time(2)),
            [
                .cancelTimer(.expirySweep), .cancelTimer(.scanTimeout(scan)),
                .endScan(scan, .peripheralScanTimeout),
            ])
        XCTAssertNil(state.scan(ranging: false))
    }

    func testATimeOutEndsAScanThatHasReportedWithoutAnError() throws {
        turnOn()
        let scan = try state.startScan(ScanRequest(), timeout: 2).get()
        XCTAssertEqual(receive(device(1), at: 1), [.discovered(key(1), scan)])
        XCTAssertEqual(
            state.fired(.scanTimeout(scan), at: time(2)),
            [.cancelTimer(.expirySweep), .cancelTimer(.scanTimeout(scan)), .endScan(scan, nil)])
    }

    func testAStaleTimerDoesNotEndALaterScan() throws {
        turnOn()
        let first = try state.startScan(ScanRequest(), timeout: 2).get()
        _ = state.stopScan()
        let second = try scan()
        XCTAssertEqual(state.fired(.scanTimeout(first), at: time(2)), [])
        XCTAssertEqual(state.scan(ranging: false)?.id, second)
    }

    func testAScanOutlivesPowerAndDaemon() throws {
        turnOn()
        let scan = try scan()
        _ = state.event(.adapterPower(false))
        _ = state.event(.reached(.noDaemon))
        XCTAssertEqual(state.scan(ranging: false)?.id, scan)
    }

    // MARK: Sightings

    func testEachPeripheralIsReportedOnce() throws {
        turnOn()
        let scan = try scan()
        XCTAssertEqual(receive(device(1)), [.discovered(key(1), scan)])
        XCTAssertEqual(receive(device(1, rssi: -51)), [])
        XCTAssertEqual(receive(device(2)), [.discovered(key(2), scan)])
    }

    func testWithDuplicatesEachSightingIsReported() throws {
        turnOn()
        let scan = try scan { $0.allowsDuplicates = true }
        XCTAssertEqual(receive(device(1)), [.discovered(key(1), scan)])
        XCTAssertEqual(receive(device(1)), [.discovered(key(1), scan)])
    }

    func testARememberedDeviceIsNotReportedUntilItAdvertises() throws {
        turnOn()
        let scan = try scan()
        XCTAssertEqual(receive(device(1, rssi: nil), fields: [.name], isAdvertised: false), [])
        XCTAssertEqual(receive(device(1)), [.discovered(key(1), scan)])
    }

    func testANewScanReportsEverybodyAnew() throws {
        turnOn()
        _ = try scan()
        _ = receive(device(1))
        _ = state.stopScan()
        let second = try scan()
        XCTAssertEqual(receive(device(1)), [.discovered(key(1), second)])
        XCTAssertEqual(state.peripherals.listedCount, 1)
    }

    func testWithoutAScanNobodyIsReported() {
        turnOn()
        XCTAssertEqual(receive(device(1)), [])
        XCTAssertEqual(state.peripherals.listedCount, 0)
    }

    func testAServiceThatComesLaterMakesItsDeviceMatch() throws {
        turnOn()
        let service = CBUUID(string: "180D")
        let scan = try scan { $0.services = [service] }
        XCTAssertEqual(receive(device(1)), [])
        let complete = device(1) { $0.uuids = [service] }
        XCTAssertEqual(receive(complete, fields: [.uuids], isAdvertised: false), [.discovered(key(1), scan)])
    }

    func testASignalThatGrowsStrongEnoughIsReportedThen() throws {
        turnOn()
        let scan = try scan { $0.rssiThreshold = -70 }
        XCTAssertEqual(receive(device(1, rssi: -90)), [])
        XCTAssertEqual(receive(device(1, rssi: 127)), [])
        XCTAssertEqual(receive(device(1, rssi: -65)), [.discovered(key(1), scan)])
    }

    func testTheSameAddressOfTheOtherTypeIsAnotherPeripheral() throws {
        turnOn()
        _ = try scan()
        _ = receive(device(1))
        XCTAssertEqual(receive(device(1) { $0.addressType = .random }).count, 1)
    }

    func testValuesFollowBlueZAlsoWithoutAScan() throws {
        turnOn()
        _ = try scan()
        _ = receive(device(1))
        _ = state.stopScan()
        let gone = device(1, rssi: nil)
        XCTAssertEqual(receive(gone, fields: [.rssi], isAdvertised: false), [])
        XCTAssertNil(state.peripherals[key(1)]?.lastValues, "The values are those in the object tree.")
    }

    // MARK: Leaving

    func testWhoFallsSilentExpiresOnceAndIsDiscoveredAnew() throws {
        turnOn()
        let scan = try scan()
        _ = receive(device(1), at: 0)
        XCTAssertEqual(state.fired(.expirySweep, at: time(29)), [.startTimer(.expirySweep, 5)])
        XCTAssertEqual(
            state.fired(.expirySweep, at: time(30)), [.expired(key(1)), .drop(key(1)), .startTimer(.expirySweep, 5)])
        XCTAssertEqual(state.fired(.expirySweep, at: time(60)), [.startTimer(.expirySweep, 5)])
        XCTAssertEqual(receive(device(1), at: 61), [.discovered(key(1), scan)])
    }

    func testWhomBlueZDropsDuringAScanExpires() throws {
        turnOn()
        _ = try scan()
        _ = receive(device(1))
        XCTAssertEqual(
            Orders.given { state.deviceRemoved(key(1), into: &$0) }, [.expired(key(1)), .drop(key(1))])
        XCTAssertEqual(Orders.given { state.deviceRemoved(key(1), into: &$0) }, [])
    }

    func testWhomBlueZDropsAfterTheScanStaysOnTheList() throws {
        turnOn()
        _ = try scan()
        _ = receive(device(1))
        _ = state.stopScan()
        XCTAssertEqual(Orders.given { state.deviceRemoved(key(1), into: &$0) }, [])
        XCTAssertEqual(state.peripherals.listedCount, 1)
    }

    func testACrowdMakesTheLongestSilentLeave() throws {
        turnOn()
        let scan = try scan()
        for number in 1...4 as ClosedRange<UInt64> { _ = receive(device(number), at: Double(number)) }
        XCTAssertEqual(receive(device(5), at: 5), [.drop(key(1)), .discovered(key(5), scan)])
    }

    func testResetEndsTheScanAndAnnouncesEverythingAnew() throws {
        turnOn()
        let scan = try scan()
        XCTAssertTrue(state.reset().contains(.endScan(scan, nil)))
        XCTAssertEqual(state.managerState, .unknown)
        _ = state.event(.reached(.ready))
        XCTAssertEqual(state.event(.adapterPower(true)), [.announce(.poweredOn)])
    }
}

extension CentralState {
    fileprivate mutating func event(_ event: ManagerStateMachine.Event) -> [Order.Action] {
        Orders.given { self.event(event, into: &$0) }
    }

    fileprivate mutating func startScan(
        _ request: ScanRequest, timeout: TimeInterval
    ) -> Result<ScanNumber, CentralManagerError> {
        var orders = Orders()
        return startScan(request, timeout: timeout, into: &orders)
    }

    fileprivate mutating func stopScan() -> [Order.Action] { Orders.given { stopScan(ranging: false, into: &$0) } }
    fileprivate mutating func reset() -> [Order.Action] { Orders.given { reset(into: &$0) } }

    fileprivate mutating func fired(_ timer: Order.Timer, at now: Instant) -> [Order.Action] {
        Orders.given { fired(timer, of: PeripheralKey(rawValue: 0), at: now, into: &$0) }
    }
}
