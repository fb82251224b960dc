import XCTest

@testable import BlueZSimulator

/// Centrals that subscribe to a program's characteristics: which calls BlueZ makes, and which centrals get the values.
final class CentralSubscriptionTests: XCTestCase {
    func testTheFirstSubscriberStartsAndTheLastOneStops() {
        let (simulator, program, link) = ServingProgram.scene()
        let other = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:02"))
        simulator.advance(by: 1)
        link.subscribe(to: "2A37")
        other.subscribe(to: "2A37")
        other.subscribe(to: "2A37")
        simulator.run()
        // 5.66 asks again for each central.
        program.expectCalls("c0 StartNotify", "c0 StartNotify")
        program.notify("/app/s0/c0", [1, 2])
        program.notify("/app/s0/c0", [1, 2])
        XCTAssertEqual(link.values.map(\.bytes), [[1, 2], [1, 2]])
        XCTAssertEqual(other.values.map(\.bytes), [[1, 2], [1, 2]])
        link.unsubscribe(from: "2A37")
        program.expectCalls()
        program.notify("/app/s0/c0", [3])
        XCTAssertEqual(link.values.count, 2)
        XCTAssertEqual(other.values.count, 3)
        other.disconnect()
        program.expectCalls("c0 StopNotify")
    }

    func testIndicationsGoOneByOneAndAreConfirmedToTheProgram() {
        let (simulator, program, link) = ServingProgram.scene()
        link.subscribe(to: "2A37", indications: true)
        simulator.run()
        program.notify("/app/s0/c0", [1])
        program.notify("/app/s0/c0", [2])
        XCTAssertEqual(link.values.map(\.bytes), [[1]])
        program.expectCalls("c0 StartNotify")
        simulator.advance(by: 0.1)
        XCTAssertEqual(link.values.map(\.bytes), [[1], [2]])
        XCTAssertEqual(link.values.map(\.isIndication), [true, true])
        program.expectCalls("c0 Confirm", "c0 Confirm")
    }

    func testACentralThatConfirmsNothingLosesItsLink() {
        let (simulator, program, _) = ServingProgram.scene()
        let mute = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:02", confirmsIndications: false))
        simulator.advance(by: 1)
        mute.subscribe(to: "2A37", indications: true)
        simulator.run()
        program.notify("/app/s0/c0", [1])
        simulator.advance(by: 29)
        XCTAssertEqual(mute.state, .connected)
        simulator.advance(by: 2)
        XCTAssertEqual(mute.state, .disconnected)
        program.expectCalls("c0 StartNotify", "c0 StopNotify")
    }

    func testValuesAreCutToThePacketAndAnInvalidatedOneIsEmpty() {
        let (simulator, program, link) = ServingProgram.scene(central: VirtualCentral("C0:FF:EE:00:CE:01", mtu: 23))
        link.subscribe(to: "2A37")
        simulator.run()
        program.notify("/app/s0/c0", [UInt8](repeating: 1, count: 30))
        program.say("/app/s0/c0", InterfaceName.characteristic, [], invalidated: ["Value"])
        XCTAssertEqual(link.values.map(\.bytes.count), [20, 0])
    }

    func testTheDescriptorForSubscriptionsIsEachCentralsOwn() {
        let (simulator, program, link) = ServingProgram.scene()
        let other = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:02"))
        simulator.advance(by: 1)
        link.subscribe(to: "2A37")
        simulator.run()
        let (mine, others) = (link.read("2A37", descriptor: "2902"), other.read("2A37", descriptor: "2902"))
        let refused = link.write([4, 0], to: "2A37", descriptor: "2902")
        let tooLong = link.write([1, 0, 0], to: "2A37", descriptor: "2902")
        simulator.run()
        XCTAssertEqual(mine.bytes, [1, 0])
        XCTAssertEqual(others.bytes, [0, 0])
        XCTAssertEqual(refused.failure, .attribute(0xFD))
        XCTAssertEqual(tooLong.failure, .attribute(0x0D))
        program.expectCalls("c0 StartNotify")
    }
}
