import BlueCapKit
import BlueZSimulator
import Foundation
import GatewayCore
import GatewayRadio
import XCTest

/// The radio with a simulated BlueZ, in real time.
final class RadioTests: XCTestCase {
    private static let address: VirtualAddress = "C0:FF:EE:00:00:01"
    private static let tag = DeviceName("C0:FF:EE:00:00:01")
    private static let measurement = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
    private static let level = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))

    private static let peripheral = VirtualPeripheral(
        RadioTests.address, advertisement: Advertisement(localName: "Tag", serviceUUIDs: ["180D"]), interval: 0.1,
        services: [
            VirtualService(
                "180D",
                characteristics: [
                    VirtualCharacteristic("2A37", [.notify], notifications: .counter(size: 1, every: 0.02))
                ]),
            VirtualService(
                "180F", characteristics: [VirtualCharacteristic("2A19", [.read, .write], value: [64])]),
        ])

    private var simulator: Simulator?
    private var running: [Task<Void, Never>] = []

    override func tearDown() async throws {
        for task in running {
            task.cancel()
            await task.value
        }
        running = []
        simulator?.end()
        simulator = nil
    }

    /// A radio that runs with a room of one peripheral.
    private func start(
        _ recorder: Recorder, followed: [FollowedDevice] = []
    ) throws -> (radio: Radio, simulator: Simulator) {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        self.simulator = simulator
        simulator.add(Self.peripheral)
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let radio = Radio(manager, followed: followed) { recorder.record($0) }
        running.append(Task { await radio.run() })
        return (radio, simulator)
    }

    private func watching(_ mode: WatchedCharacteristic.Mode, _ identifier: CharacteristicIdentifier) -> FollowedDevice
    {
        FollowedDevice(.name("Tag"), characteristics: [WatchedCharacteristic(identifier, mode: mode)])
    }

    func testAdvertisementsAreReportedWhileTheRadioScans() async throws {
        let recorder = Recorder()
        let (radio, simulator) = try start(recorder)
        await recorder.wait("a report") { events in
            events.contains {
                guard case .report(let report) = $0 else { return false }
                return report.device == Self.tag && report.rssi == -60 && report.advertisements.localName == "Tag"
            }
        }
        radio.isScanning = false
        XCTAssertTrue(simulator.wait(until: { simulator.discoverySessions.isEmpty }, limit: .seconds(10)))
        radio.isScanning = true
        XCTAssertTrue(simulator.wait(until: { !simulator.discoverySessions.isEmpty }, limit: .seconds(10)))
    }

    func testNotificationsAreTakenAlsoAfterALostLink() async throws {
        let recorder = Recorder()
        let (radio, simulator) = try start(recorder, followed: [watching(.notify, Self.measurement)])
        radio.connect(try XCTUnwrap(Self.tag))
        await recorder.wait("values") { $0.values.count >= 3 }
        simulator.simulateLinkLoss(of: Self.address)
        await recorder.wait("the loss") { $0.links.contains { if case .lost = $0 { true } else { false } } }
        await recorder.wait("a gap, and values after it") { events in
            let afterLoss = events.drop { if case .link(_, .lost) = $0 { false } else { true } }
            let afterGap = afterLoss.drop { if case .gap(_, _, .linkLost, _) = $0 { false } else { true } }
            return Array(afterGap).values.count >= 3
        }
        XCTAssertEqual(recorder.events.gaps, [.restarted, .linkLost])
        XCTAssertEqual(recorder.events.links.count { $0 == .connected }, 2)
    }

    func testValuesGoOnAfterBluetoothdWasRestarted() async throws {
        let recorder = Recorder()
        let (radio, simulator) = try start(recorder, followed: [watching(.notify, Self.measurement)])
        radio.connect(try XCTUnwrap(Self.tag))
        await recorder.wait("values") { $0.values.count >= 3 }
        simulator.simulateDaemonDeath()
        await recorder.wait("the daemon's end") { events in
            events.contains { if case .unavailable(.some) = $0 { true } else { false } }
        }
        simulator.simulateDaemonReturn()
        await recorder.wait("values after it") { events in
            let later = events.drop { if case .unavailable(.some) = $0 { false } else { true } }
            return Array(later).values.count >= 3
        }
    }

    func testAValueIsReadAtItsInterval() async throws {
        let recorder = Recorder()
        let (radio, simulator) = try start(
            recorder, followed: [watching(.read(every: .milliseconds(20)), Self.level)])
        radio.connect(try XCTUnwrap(Self.tag))
        await recorder.wait("two values") { $0.values.prefix(2) == [64, 64] }
        simulator.setValue([63], of: "2A19", at: Self.address)
        await recorder.wait("the new value") { $0.values.last == 63 }
    }

    func testAtItsEndTheLinkIsGone() async throws {
        let recorder = Recorder()
        let (radio, simulator) = try start(recorder)
        let tag = try XCTUnwrap(Self.tag)
        radio.connect(tag)
        await recorder.wait("the link") { $0.links.contains(.connected) }
        XCTAssertEqual(simulator.links.count, 1)
        await radio.disconnect(tag)
        XCTAssertEqual(simulator.links.count, 0)
        XCTAssertEqual(recorder.events.links.last, .ended)
        XCTAssertEqual(radio.connectedDevices, [])
        radio.connect(tag)
        await recorder.wait("the second link") { $0.links.count { $0 == .connected } == 2 }
        for task in running { task.cancel() }
        for task in running { await task.value }
        XCTAssertEqual(simulator.links.count, 0)
    }

    func testALinkThatIsNotKeptEndsWithItsLoss() async throws {
        let recorder = Recorder()
        let (radio, simulator) = try start(recorder, followed: [watching(.notify, Self.measurement)])
        let tag = try XCTUnwrap(Self.tag)
        radio.connect(tag, isKept: false)
        await recorder.wait("values") { $0.values.count >= 3 }
        simulator.simulateLinkLoss(of: Self.address)
        await recorder.wait("the end") { $0.links.last == .ended }
        XCTAssertEqual(radio.connectedDevices, [])
        let hasEnded = await radio.disconnect(tag)
        XCTAssertFalse(hasEnded)
        radio.connect(tag, isKept: false)
        await recorder.wait("the second link") { $0.links.last == .connected }
        await recorder.wait("the gap") { $0.gaps == [.restarted, .linkLost] }
        await radio.disconnect(tag)
        XCTAssertEqual(simulator.links.count, 0)
        XCTAssertEqual(recorder.events.links.count { $0 == .ended }, 2)
    }

    func testCommandsUseTheLinkOrOneOfTheirOwn() async throws {
        let recorder = Recorder()
        let (radio, simulator) = try start(recorder)
        let tag = try XCTUnwrap(Self.tag)
        await recorder.wait("a report") { $0.contains { if case .report = $0 { true } else { false } } }
        let value = try await radio.read(tag, Self.level)
        XCTAssertEqual(value, Data([64]))
        try await radio.write(Data([65]), tag, Self.level)
        XCTAssertEqual(simulator.value(of: "2A19", at: Self.address), [65])
        radio.connect(tag)
        await recorder.wait("the link") { $0.links.contains(.connected) }
        let again = try await radio.read(tag, Self.level)
        XCTAssertEqual(again, Data([65]))
        XCTAssertEqual(simulator.links.count, 1)
    }

    func testALinkThatAnEarlierProcessHasLeftIsTakenOver() async throws {
        let simulator = try Simulator.onPrivateBus(room: .empty)
        self.simulator = simulator
        simulator.add(Self.peripheral)
        // It ends without ending its link, as a process that is killed.
        let earlier = try CentralManager(configuration: .init(busAddress: simulator.address, keepsLinks: true))
        try await earlier.waitUntilPoweredOn(timeout: .seconds(10))
        let peripheral = try await earlier.startScanning().first().value
        try await peripheral.connect(timeout: .seconds(10))
        earlier.stopScanning()

        let recorder = Recorder()
        let manager = try CentralManager(configuration: .init(busAddress: simulator.address))
        let radio = Radio(manager, followed: [watching(.notify, Self.measurement)]) { recorder.record($0) }
        running.append(Task { await radio.run() })
        await recorder.wait("the link") { events in
            events.contains {
                guard case .foreignLink(let device, let name, _) = $0 else { return false }
                return device == Self.tag && name == "Tag"
            }
        }
        radio.connect(try XCTUnwrap(Self.tag))
        await recorder.wait("values") { $0.values.count >= 3 }
        await radio.disconnect(try XCTUnwrap(Self.tag))
        XCTAssertEqual(simulator.links.count, 0)
    }

    func testACharacteristicIsWatchedAndNoLongerWatched() async throws {
        let recorder = Recorder()
        let (radio, simulator) = try start(recorder)
        let tag = try XCTUnwrap(Self.tag)
        radio.watch(tag, WatchedCharacteristic(Self.measurement, mode: .notify))
        radio.connect(tag)
        await recorder.wait("values") { $0.values.count >= 3 }
        radio.unwatch(tag, Self.measurement)
        XCTAssertTrue(
            simulator.wait(
                until: { simulator.subscriptions(to: "2A37", at: Self.address).isEmpty }, limit: .seconds(10)))
    }

    func testADeviceThatWasNotReceivedIsAClearError() async throws {
        let (radio, _) = try start(Recorder())
        let other = try XCTUnwrap(DeviceName("00:00:00:00:00:09"))
        do {
            _ = try await radio.read(other, Self.level)
            XCTFail("read")
        } catch {
            XCTAssertEqual(
                "\(error)",
                "The gateway has not received the device 00:00:00:00:00:09. Is it switched on and in range?")
        }
    }
}
