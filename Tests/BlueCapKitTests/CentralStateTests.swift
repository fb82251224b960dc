import BlueCapGATT
import BlueCapReactor
import BlueCapDBus
import TestSupport
import XCTest

@testable import BlueCapKit
@testable import BlueCapBlueZ

/// A `CentralState` with the scans that were begun.
private struct CentralPlayer {
    var state = CentralState(maximumPeripherals: 4)
    private var scans: [ScanNumber] = []

    static func device(_ number: UInt64, rssi: Int16? = -50, _ change: (inout Device1) -> Void = { _ in }) -> Device1 {
        var device = Device1(address: BluetoothAddress(rawValue: number))
        if let rssi {
            device.rawRSSI = rssi
            device.fields.insert(.rssi)
        }
        change(&device)
        return device
    }

    mutating func receive(
        _ device: Device1, fields: Device1.Fields = [.rssi], isAdvertised: Bool = true, at seconds: Double = 0
    ) -> [Order.Action] {
        Orders.given {
            state.deviceChanged(
                PeripheralKey(device), ObjectKey(rawValue: device.address.rawValue), device, fields: fields,
                isAdvertised: isAdvertised, at: Self.time(seconds), date: Date(timeIntervalSince1970: 1_000), into: &$0)
        }
    }

    private static let refusals: [String: CentralManagerError] = [
        "isPoweredOff": .isPoweredOff, "unsupported": .unsupported, "unauthorized": .unauthorized,
        "isScanning": .isScanning,
    ]

    private static func time(_ seconds: Double) -> Instant { Instant.origin.advanced(by: seconds) }

    private func words(_ actions: [Order.Action]) -> String {
        func scan(_ number: ScanNumber) -> Int { (scans.firstIndex(of: number) ?? -1) + 1 }
        let words = actions.map { action in
            switch action {
            case .discovered(let key, let number): "discovered \(key.rawValue) in \(scan(number))"
            case .expired(let key): "expired \(key.rawValue)"
            case .drop(let key): "drop \(key.rawValue)"
            case .endScan(let number, let error): "end \(scan(number))" + (error == nil ? "" : " peripheralScanTimeout")
            case .startScan(let number, _): "start \(scan(number))"
            case .startTimer(.scanTimeout(let number), let seconds): "limit \(scan(number)) \(seconds)"
            case .cancelTimer(.scanTimeout(let number)): "cancelLimit \(scan(number))"
            case .startTimer(.expirySweep, let seconds): "sweep \(seconds)"
            case .cancelTimer(.expirySweep): "cancelSweep"
            case .cancelTimer(.adapterGrace): "cancelGrace"
            case .announce(let state): "announce \(state)"
            default: "\(action)"
            }
        }
        return words.isEmpty ? "none" : words.joined(separator: ", ")
    }

    /// Executes an event of a table. `seen` is a report of the device with that number, with the options `at`, `rssi`, and
    /// `remembered` for one that does not advertise.
    mutating func send(_ event: [String]) throws -> String {
        let number = event.count > 1 ? UInt64(event[1]) ?? 0 : 0
        func option(_ name: String) -> Double? { event.firstIndex(of: name).flatMap { Double(event[$0 + 1]) } }
        let (seconds, service) = (option("at") ?? 0, CBUUID(string: "180D"))
        var orders = Orders()
        switch event[0] {
        case "listed": return "\(state.peripherals.listedCount)"
        case "state": return "\(state.managerState)"
        case "scanning":
            return state.scan(ranging: false).flatMap { scans.firstIndex(of: $0.id) }.map { "\($0 + 1)" } ?? "none"
        case "lastValues":
            return state.peripherals[PeripheralKey(rawValue: number)]?.lastValues == nil ? "none" : "kept"
        case "on":
            for event in [.reached(.ready), .adapterPower(true)] as [ManagerStateMachine.Event] {
                state.event(event, into: &orders)
            }
        case "ready": state.event(.reached(.ready), into: &orders)
        case "off": state.event(.adapterPower(false), into: &orders)
        case "noDaemon": state.event(.reached(.noDaemon), into: &orders)
        case "refused":
            let error = DBusError(name: "org.freedesktop.DBus.Error.Failed", message: "")
            state.event(.reached(.refused(error)), into: &orders)
        case "scan":
            var request = ScanRequest()
            request.allowsDuplicates = event.contains("duplicates")
            if event.contains("180D") { request.services = [service] }
            if let threshold = option("threshold") { request.rssiThreshold = Int(threshold) }
            do {
                scans.append(try state.startScan(request, timeout: option("limit") ?? .infinity, into: &orders).get())
            } catch {
                return Self.refusals.first { $0.value == error }?.key ?? "\(error)"
            }
        case "stop": state.stopScan(ranging: false, into: &orders)
        case "reset": state.reset(into: &orders)
        case "removed": state.deviceRemoved(PeripheralKey(rawValue: number), into: &orders)
        case "swept": state.fired(.expirySweep, of: PeripheralKey(rawValue: 0), at: Self.time(seconds), into: &orders)
        case "limit":
            state.fired(
                .scanTimeout(scans[Int(number) - 1]), of: PeripheralKey(rawValue: 0), at: Self.time(seconds),
                into: &orders)
        case "seen":
            let isRemembered = event.contains("remembered")
            let device = Self.device(number, rssi: isRemembered ? nil : Int16(option("rssi") ?? -50)) {
                if event.contains("180D") { $0.uuids = [service] }
                if event.contains("random") { $0.addressType = .random }
            }
            return words(
                receive(
                    device, fields: event.contains("180D") ? [.uuids] : [.rssi],
                    isAdvertised: !isRemembered && !event.contains("180D"), at: seconds))
        default: throw UnknownEvent(event)
        }
        return words(orders.pending.map(\.action))
    }
}

final class CentralStateTests: XCTestCase {
    private func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            var player = CentralPlayer()
            return { try player.send($0) }
        }
    }

    func testAnAliasOfAnAddressNeverTakesOverAnotherPeripheral() throws {
        var player = CentralPlayer()
        for event in [["on"], ["scan"]] { _ = try player.send(event) }
        let hidden = CentralPlayer.device(0x51) { $0.addressType = .random }
        let identity = CentralPlayer.device(7)
        _ = player.receive(hidden)
        _ = player.receive(identity)
        let adapter = try XCTUnwrap(ObjectKey(adapter: 0))
        let source = try XCTUnwrap(ObjectKey(device: hidden.address, on: adapter))
        XCTAssertEqual(player.state.key(of: source, at: PeripheralKey(identity)), PeripheralKey(identity))
        // An address without a peripheral of its own.
        let free = PeripheralKey(CentralPlayer.device(8))
        XCTAssertEqual(player.state.key(of: source, at: free), PeripheralKey(hidden))
        XCTAssertEqual(player.state.presentAddress(of: PeripheralKey(hidden)), free)
    }

    func testScans() {
        play(
            """
            A scan needs power, and there is one:
            scan → isPoweredOff; noDaemon; scan → unsupported; refused; scan → unauthorized; ready; off
            scan → isPoweredOff
            on; scan; scanning → 1; scan → isScanning
            A time limit ends its scan with the documented error:
            on; scan limit 2 → start 1, sweep 5.0, limit 1 2.0
            limit 1 at 2 → cancelSweep, cancelLimit 1, end 1 peripheralScanTimeout; scanning → none
            A time limit ends a scan that has reported without an error:
            on; scan limit 2; seen 1 at 1 → discovered 1 in 1; limit 1 at 2 → cancelSweep, cancelLimit 1, end 1
            The time limit of an earlier scan does not end a later one:
            on; scan limit 2; stop; scan; limit 1 at 2 → none; scanning → 2
            A scan outlives power and daemon:
            on; scan; off; noDaemon; scanning → 1
            A reset ends the scan and announces everything again:
            on; scan; reset → cancelSweep, end 1, rejectRequests, cancelGrace; state → unknown; ready
            on → announce poweredOn
            """)
    }

    func testSightings() {
        play(
            """
            Each peripheral is reported once:
            on; scan; seen 1 → discovered 1 in 1; seen 1 rssi -51 → none; seen 2 → discovered 2 in 1
            With duplicates each sighting is reported:
            on; scan duplicates; seen 1 → discovered 1 in 1; seen 1 → discovered 1 in 1
            A remembered device is not reported until it advertises:
            on; scan; seen 1 remembered → none; seen 1 → discovered 1 in 1
            A new scan reports all again:
            on; scan; seen 1; stop; scan; seen 1 → discovered 1 in 2; listed → 1
            Without a scan none is reported:
            on; seen 1 → none; listed → 0
            A service that is reported later makes its device match:
            on; scan 180D; seen 1 → none; seen 1 180D → discovered 1 in 1
            A signal that becomes strong enough is reported then:
            on; scan threshold -70; seen 1 rssi -90 → none; seen 1 rssi 127 → none; seen 1 rssi -65 → discovered 1 in 1
            The same address of the other type is another peripheral:
            on; scan; seen 1; seen 1 random; listed → 2
            Values follow BlueZ also without a scan, and are those in the object tree:
            on; scan; seen 1; stop; seen 1 remembered → none; lastValues 1 → none
            """)
    }

    func testLeaving() {
        play(
            """
            What is silent expires once and is discovered again:
            on; scan; seen 1; swept at 29 → sweep 5.0; swept at 30 → expired 1, drop 1, sweep 5.0
            swept at 60 → sweep 5.0
            seen 1 at 61 → discovered 1 in 1
            What BlueZ removes during a scan expires once:
            on; scan; seen 1; removed 1 → expired 1, drop 1; removed 1 → none
            What BlueZ removes after the scan stays on the list:
            on; scan; seen 1; stop; removed 1 → none; listed → 1
            In a crowd the one that has been silent for longest leaves:
            on; scan; seen 1 at 1; seen 2 at 2; seen 3 at 3; seen 4 at 4; seen 5 at 5 → drop 1, discovered 5 in 1
            """)
    }
}
