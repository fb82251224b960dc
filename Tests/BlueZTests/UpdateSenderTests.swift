import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

/// Values for all go over the bus, values for one over its socket, and each central receives them in the order of the calls.
final class UpdateSenderTests: XCTestCase {
    private func subscribed(
        _ flags: GattFlags = .notify, minor: UInt8? = 82, by centrals: UInt8 = 2
    ) throws -> (ServerScene, [OwnedDescriptor]) {
        let scene = ServerScene(minor: minor)
        let characteristic = ServerCharacteristic(
            id: ServerAttributeID(2), uuid: CBUUID(string: "2A19"), flags: flags, givesNotifySocket: true)
        scene.serve(
            ServerService(id: ServerAttributeID(1), uuid: CBUUID(string: "180F"), characteristics: [characteristic]))
        scene.accept()
        scene.listen()
        for number in 1...centrals { scene.meet(number) }
        return (scene, try (1...centrals).map { try scene.acquire($0) })
    }

    private func key(_ number: UInt8) -> ObjectKey { ServerScene.key(number) }

    private func pings(_ scene: ServerScene) -> Int { scene.daemon.count("Ping") }

    /// Waits until the socket of a subscriber is closed.
    private func waitForEnd(of subscriber: Int, _ scene: ServerScene) {
        scene.daemon.loop.wait(
            until: { scene.delegate.subscribers(of: 2)[subscriber].directWay == .closed }, limit: 5)
    }

    private func waitForLastEnd(_ scene: ServerScene) {
        XCTAssertTrue(scene.daemon.loop.wait(until: { scene.delegate.log.last == "-2" }, limit: 5))
    }

    func testAValueForAllIsOneSignalWhateverSocketsAreOpen() throws {
        for minor: UInt8? in [nil, 66, 72, 76, 82] {
            let (scene, sockets) = try subscribed(minor: minor)
            for value: [UInt8] in [[1], [1], [], [2]] { scene.notify(2, value) }
            XCTAssertEqual(scene.values, [[1], [1], [], [2]])
            XCTAssertEqual(try sockets.map { try ServerScene.packets($0) }, [[], []])
            XCTAssertEqual(scene.source.outcomes, ["sent [1]", "sent [1]", "sent []", "sent [2]"])
            XCTAssertEqual(pings(scene), 0)
        }
    }

    func testCentralsAreNamedAndLeave() throws {
        let (scene, sockets) = try subscribed()
        XCTAssertEqual(scene.delegate.log, ["+2", "+2"])
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.peer?.device), [key(1), key(2)])
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.directWay), [.open, .open])
        sockets[0].close()
        waitForEnd(of: 0, scene)
        scene.daemon.loop.advance(by: 1)
        XCTAssertEqual(scene.delegate.log, ["+2", "+2", "left 2"])
        sockets[1].close()
        waitForLastEnd(scene)
        scene.notify(2, [1])
        XCTAssertEqual(scene.values, [])
        XCTAssertEqual(scene.source.outcomes, [])
    }

    /// bluez#1452: the socket of the first is closed because the second has lost its link.
    func testACentralWhoseSocketWasClosedByAnothersEndGoesOnReceiving() throws {
        let (scene, sockets) = try subscribed()
        for socket in sockets { socket.close() }
        scene.daemon.loop.wait(
            until: { scene.delegate.subscribers(of: 2).allSatisfy { $0.directWay == .closed } }, limit: 5)
        scene.setLink(of: 2, isUp: false)
        scene.daemon.loop.advance(by: 10)
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.peer?.device), [key(1)])
        scene.notify(2, [1])
        scene.notify(2, [2], for: [key(1)])
        XCTAssertEqual(scene.values, [[1]])
        XCTAssertEqual(scene.source.outcomes, ["sent [1]", "unreachable [2]"])
        // BlueZ counts it, and calls this when it leaves.
        scene.send("/service0/char0", "StopNotify")
        XCTAssertEqual(scene.delegate.log.last, "-2")
    }

    func testABondedCentralIsNotSubscribedWhileItIsAway() throws {
        let (scene, sockets) = try subscribed(by: 1)
        scene.meet(1, isBonded: true)
        sockets[0].close()
        scene.setLink(of: 1, isUp: false)
        waitForLastEnd(scene)
        scene.setLink(of: 1, isUp: true)
        XCTAssertEqual(scene.delegate.log, ["+2", "-2"])
        scene.daemon.loop.advance(by: SubscriberTable.returningTime)
        XCTAssertEqual(scene.delegate.log, ["+2", "-2", "+2"])
        scene.notify(2, [1])
        XCTAssertEqual(scene.values, [[1]])
    }

    func testABondedCentralThatIsRemovedWhileItIsAwayDoesNotReturn() throws {
        let (scene, sockets) = try subscribed(by: 1)
        scene.meet(1, isBonded: true)
        sockets[0].close()
        scene.setLink(of: 1, isUp: false)
        waitForLastEnd(scene)
        scene.daemon.send(BlueZMessages.interfacesRemoved(ServerScene.device(1), ["org.bluez.Device1"]))
        scene.meet(1, isUp: false)
        scene.setLink(of: 1, isUp: true)
        scene.daemon.loop.advance(by: 1)
        XCTAssertEqual(scene.delegate.log, ["+2", "-2"])
    }

    func testWhatCanBeDoneForACentralIsReportedAgainWhenMoreIsKnownOfTheDaemon() throws {
        let (scene, sockets) = try subscribed(minor: nil)
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.directWay), [.unsupported, .unsupported])
        scene.daemon.set([("Modalias", .string("usb:v1D6Bp0246d0552"))])
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.directWay), [.open, .open])
        withExtendedLifetime(sockets) {}
    }

    func testAValueForOneCentralGoesOverItsSocketAlone() throws {
        let (scene, sockets) = try subscribed(by: 3)
        scene.notify(2, [1], for: [key(2)])
        scene.notify(2, [2], for: [key(3), key(1)])
        XCTAssertEqual(try sockets.map { try ServerScene.packets($0) }, [[[2]], [[1]], [[2]]])
        XCTAssertEqual(scene.values, [])
        XCTAssertEqual(scene.source.outcomes, ["sent [1]", "sent [2]"])
    }

    func testEarlierBlueZCannotSendToOne() throws {
        for minor: UInt8? in [nil, 66, 68, 69, 72, 75] {
            let (scene, sockets) = try subscribed(minor: minor)
            scene.notify(2, [1], for: [key(2)])
            XCTAssertEqual(try sockets.map { try ServerScene.packets($0) }, [[], []])
            XCTAssertEqual(scene.values, [])
            XCTAssertEqual(scene.source.outcomes, ["unreachable [1]"])
            XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.directWay), [.unsupported, .unsupported])
        }
    }

    /// The daemon reads bus and sockets independently.
    func testWhatGoesTheOtherWayWaitsUntilTheDaemonHasReadWhatWasBefore() throws {
        let (scene, sockets) = try subscribed()
        scene.daemon.silent.insert("Ping")
        scene.notify(2, [1])
        scene.notify(2, [2], for: [key(1)])
        scene.notify(2, [3], for: [key(1)])
        scene.notify(2, [4])
        XCTAssertEqual(scene.values, [[1]])
        XCTAssertEqual(try ServerScene.packets(sockets[0]), [], "The signal may not have been read yet.")
        scene.daemon.answerLate("Ping")
        XCTAssertEqual(pings(scene), 2)
        scene.daemon.answerLate("Ping")
        scene.daemon.loop.advance(by: 0.2)
        XCTAssertEqual(scene.values, [[1]], "The socket has not been read yet.")
        XCTAssertEqual(scene.source.outcomes, ["sent [1]", "sent [2]", "sent [3]"])
        XCTAssertEqual(try ServerScene.packets(sockets[0]), [[2], [3]])
        scene.daemon.loop.advance(by: 0.1)
        XCTAssertEqual(scene.values, [[1], [4]])
        XCTAssertEqual(scene.source.outcomes.last, "sent [4]")
    }

    func testWhatIsForACentralThatHasLeftFailsAlone() throws {
        let (scene, sockets) = try subscribed()
        scene.daemon.silent.insert("Ping")
        scene.notify(2, [1])
        scene.notify(2, [2], for: [key(1)])
        scene.notify(2, [3], for: [key(1), key(2)])
        scene.notify(2, [4])
        sockets[0].close()
        waitForEnd(of: 0, scene)
        scene.daemon.answerLate("Ping")
        XCTAssertEqual(try ServerScene.packets(sockets[1]), [[3]])
        scene.daemon.answerLate("Ping")
        XCTAssertEqual(scene.values, [[1], [4]])
        XCTAssertEqual(scene.source.outcomes, ["sent [1]", "unreachable [2]", "sent [3]", "sent [4]"])
    }

    func testAnIndicationIsTakenWhenEachSubscriberHasConfirmedIt() throws {
        let (scene, sockets) = try subscribed(.indicate, by: 3)
        scene.notify(2, [1])
        scene.notify(2, [2])
        for confirmation in 1...3 {
            XCTAssertEqual(scene.values, [[1]], "before confirmation \(confirmation)")
            scene.send("/service0/char0", "Confirm")
        }
        XCTAssertEqual(scene.values, [[1], [2]])
        XCTAssertEqual(scene.source.outcomes, ["sent [1]"])
        withExtendedLifetime(sockets) {}
    }

    func testNoConfirmationIsExpectedOfACentralThatHasLeft() throws {
        let (scene, sockets) = try subscribed(.indicate)
        scene.notify(2, [1])
        scene.notify(2, [2])
        sockets[1].close()
        waitForEnd(of: 1, scene)
        scene.setLink(of: 2, isUp: false)
        XCTAssertEqual(scene.values, [[1]])
        scene.send("/service0/char0", "Confirm")
        XCTAssertEqual(scene.values, [[1], [2]])
    }

    /// From 5.80 on, a byte on the socket.
    func testAnIndicationForOneIsConfirmedOverItsSocket() throws {
        let (scene, sockets) = try subscribed(.indicate)
        scene.notify(2, [1], for: [key(1)])
        scene.notify(2, [2], for: [key(1)])
        XCTAssertEqual(try ServerScene.packets(sockets[0]), [[1]])
        XCTAssertEqual(scene.source.outcomes, [])
        XCTAssertNil([UInt8]([1]).withUnsafeBytes { sendPacket($0, to: sockets[0].rawValue ?? -1) })
        XCTAssertTrue(scene.daemon.loop.wait(until: { scene.source.outcomes == ["sent [1]"] }, limit: 5))
        XCTAssertEqual(try ServerScene.packets(sockets[0]), [[2]])
        scene.daemon.loop.advance(by: 31)
        XCTAssertEqual(scene.source.outcomes, ["sent [1]", "unconfirmed [2]"])
    }

    /// Until it has read the first answer, `bluetoothd` asks again when the central writes its 0x2902 again.
    func testASecondSocketForOneCentralIsRefused() throws {
        for minor: UInt8 in [69, 76, 82] {
            let (scene, sockets) = try subscribed(minor: minor)
            XCTAssertThrowsError(try scene.acquire(1)) { error in
                XCTAssertEqual("\(error)".contains("Failed"), true, "\(error): BlueZ must not call StartNotify.")
            }
            XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.peer?.device), [key(1), key(2)])
            if minor >= 76 {
                scene.notify(2, [1], for: [key(1)])
                XCTAssertEqual(try ServerScene.packets(sockets[0]), [[1]])
            }
            sockets[0].close()
            let again = try scene.acquire(1)
            scene.daemon.loop.advance(by: 2)
            XCTAssertEqual(Set(scene.delegate.subscribers(of: 2).map(\.peer?.device)), [key(1), key(2)])
            withExtendedLifetime(again) {}
        }
    }

    /// `bluetoothd` may have closed the first socket long before the loop looks at it: it reads the bus first.
    func testASubscriptionAfterAnEndIsReportedAfterIt() throws {
        for minor: UInt8 in [66, 69, 76, 82] {
            let (scene, sockets) = try subscribed(minor: minor, by: 1)
            sockets[0].close()
            let again = try scene.acquire(1)
            XCTAssertEqual(scene.delegate.log, ["+2", "-2", "+2"], "BlueZ 5.\(minor)")
            scene.daemon.loop.advance(by: 2)
            XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.peer?.device), [key(1)], "BlueZ 5.\(minor)")
            withExtendedLifetime(again) {}
        }
    }

    func testASocketEndsWithItsLink() throws {
        let (scene, sockets) = try subscribed()
        scene.setLink(of: 1, isUp: false)
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.peer?.device), [key(2)])
        XCTAssertTrue(isHungUp(try XCTUnwrap(sockets[0].rawValue)))
        XCTAssertFalse(isHungUp(try XCTUnwrap(sockets[1].rawValue)))
    }

    func testASocketThatTheDaemonDoesNotReadIsGivenUp() throws {
        let (scene, sockets) = try subscribed()
        scene.notify(2, [1], for: [key(1)])
        scene.notify(2, [2])
        scene.daemon.loop.advance(by: 0.4)
        XCTAssertEqual(scene.values, [], "The daemon may be slow.")
        scene.daemon.loop.advance(by: 1)
        XCTAssertEqual(scene.values, [[2]])
        XCTAssertTrue(isHungUp(try XCTUnwrap(sockets[0].rawValue)))
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.directWay), [.closed, .open])
        scene.notify(2, [3], for: [key(2)])
        XCTAssertEqual(try ServerScene.packets(sockets[1]), [[3]])
    }

    func testNoSocketIsGivenUpWhileTheDaemonHangs() throws {
        let (scene, sockets) = try subscribed()
        scene.daemon.silent.insert("Ping")
        scene.notify(2, [1], for: [key(1)])
        scene.notify(2, [2])
        for _ in 1...3 { scene.daemon.loop.advance(by: 60) }
        XCTAssertEqual(scene.values, [])
        XCTAssertGreaterThan(pings(scene), 1, "It is asked again.")
        XCTAssertLessThan(pings(scene), 30)
        XCTAssertEqual(try ServerScene.packets(sockets[0]), [[1]])
        scene.daemon.silent.remove("Ping")
        scene.daemon.loop.advance(by: 20)
        XCTAssertEqual(scene.values, [[2]])
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.directWay), [.open, .open])
    }

    func testAnUpdateThatReachesNoneNeedsNoBarrier() throws {
        let (scene, sockets) = try subscribed()
        scene.notify(2, [1])
        scene.notify(2, [2], for: [key(3)])
        scene.notify(2, [3])
        XCTAssertEqual(pings(scene), 0)
        XCTAssertEqual(scene.values, [[1], [3]])
        XCTAssertEqual(scene.source.outcomes, ["sent [1]", "unreachable [2]", "sent [3]"])
        withExtendedLifetime(sockets) {}
    }

    func testOneThatHasJustUnsubscribedNeedNotConfirm() throws {
        let (scene, sockets) = try subscribed(.indicate)
        sockets[1].close()
        waitForEnd(of: 1, scene)
        scene.notify(2, [1])
        scene.notify(2, [2])
        scene.send("/service0/char0", "Confirm")
        XCTAssertEqual(scene.values, [[1], [2]])
        XCTAssertEqual(scene.source.outcomes, ["sent [1]"])
    }

    func testTheConfirmationsThatHaveComeSufficeWhenTheMissingOneHasLeft() throws {
        let (scene, sockets) = try subscribed(.indicate, by: 3)
        scene.notify(2, [1])
        scene.send("/service0/char0", "Confirm")
        scene.send("/service0/char0", "Confirm")
        XCTAssertEqual(scene.source.outcomes, [])
        sockets[2].close()
        XCTAssertTrue(scene.daemon.loop.wait(until: { scene.source.outcomes == ["sent [1]"] }, limit: 5))
    }

    /// It may have unsubscribed since, which BlueZ does not report.
    func testABondedCentralThatReturnedWithoutASocketNeedNotConfirm() throws {
        let (scene, sockets) = try subscribed(.indicate)
        scene.meet(1, isBonded: true)
        sockets[0].close()
        scene.setLink(of: 1, isUp: false)
        scene.setLink(of: 1, isUp: true)
        scene.daemon.loop.advance(by: SubscriberTable.settlingTime)
        XCTAssertEqual(scene.delegate.subscribers(of: 2).map(\.directWay), [.closed, .open])
        scene.notify(2, [1])
        scene.send("/service0/char0", "Confirm")
        XCTAssertEqual(scene.source.outcomes, ["sent [1]"])
    }

    func testAnIndicationThatOneHasConfirmedIsNotSentAgain() throws {
        let (scene, sockets) = try subscribed(.indicate)
        scene.notify(2, [1])
        scene.send("/service0/char0", "Confirm")
        scene.daemon.loop.advance(by: 31)
        XCTAssertEqual(scene.source.outcomes, ["sent [1]"])
        withExtendedLifetime(sockets) {}
    }

    func testAConfirmationCountsWhileAnotherSocketHasNoRoom() throws {
        let (scene, sockets) = try subscribed(.indicate)
        var isFull = false
        for number in 1...2_000 where !isFull {
            scene.notify(2, [1], for: [key(1), key(2)])
            XCTAssertEqual(try ServerScene.packets(sockets[0]), [[1]])
            scene.daemon.loop.advance(by: 31)
            isFull = scene.source.outcomes.count < number
        }
        XCTAssertTrue(isFull)
        func confirm(_ index: Int) throws {
            let socket = try XCTUnwrap(sockets[index].rawValue)
            XCTAssertNil([UInt8]([1]).withUnsafeBytes { sendPacket($0, to: socket) })
            XCTAssertTrue(scene.daemon.loop.wait(until: { unreadBytes(socket) == 0 }, limit: 5))
        }
        try confirm(0)
        while try !ServerScene.packets(sockets[1]).isEmpty {}
        XCTAssertTrue(
            scene.daemon.loop.wait(until: { (try? ServerScene.packets(sockets[1])) == [[1]] }, limit: 5))
        try confirm(1)
        XCTAssertTrue(scene.daemon.loop.wait(until: { scene.source.outcomes.last == "sent [1]" }, limit: 5))
    }

    func testFrom576To579AnIndicationForOneIsTakenWhenItIsSent() throws {
        let (scene, sockets) = try subscribed(.indicate, minor: 78)
        scene.notify(2, [1], for: [key(1)])
        XCTAssertEqual(scene.source.outcomes, ["sent [1]"])
        XCTAssertEqual(try ServerScene.packets(sockets[0]), [[1]])
    }

    func testWhatIsUnderWayHasNoOutcomeWhenAllHaveLeft() throws {
        let (scene, sockets) = try subscribed(by: 1)
        scene.daemon.silent.insert("Ping")
        scene.notify(2, [1], for: [key(1)])
        scene.notify(2, [2])
        scene.notify(2, [3], for: [key(1)])
        sockets[0].close()
        waitForLastEnd(scene)
        scene.daemon.answerLate("Ping")
        XCTAssertEqual(scene.source.outcomes, ["sent [1]"])
        XCTAssertEqual(scene.values, [])
    }
}
