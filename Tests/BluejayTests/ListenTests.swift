import Bluejay
import BlueZSimulator
import TestSupport
import XCTest

final class ListenTests: BluejayCase, @unchecked Swift.Sendable {
    private func listen(_ name: String, _ option: MultipleListenOption = .trap) {
        bluejay.listen(to: Self.measurement, multipleListenOption: option) { [seen] (result: ReadResult<UInt16>) in
            seen.note(name, result)
        }
    }

    func testASecondListenIsTrapped() {
        connect()
        listen("first")
        listen("second")
        expect("second multipleListenTrapped")
        notify([1, 0])
        XCTAssertEqual(seen.texts, ["second multipleListenTrapped", "first 1"])
    }

    func testAReplaceableListenIsReplaced() {
        connect()
        listen("first", .replaceable)
        awaitSubscription()
        notify([1, 0])
        listen("second")
        expect("first multipleListenReplaced")
        pass(0.2)
        notify([2, 0])
        XCTAssertEqual(seen.texts, ["first 1", "first multipleListenReplaced", "second 2"])
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address).count, 1)
    }

    func testBytesThatMakeNoValueAreAFailureThatDoesNotEndTheListen() {
        connect()
        listen("listen")
        awaitSubscription()
        notify([1])
        notify([2, 0])
        XCTAssertEqual(seen.texts.count, 2)
        XCTAssertTrue(seen.texts[0].contains("There are 1 bytes"), seen.texts[0])
        XCTAssertEqual(seen.texts[1], "listen 2")
    }

    func testTheEndOfAListenMaySayWhy() throws {
        connect()
        listen("listen")
        awaitSubscription()
        bluejay.endListen(to: Self.measurement, error: BluejayError.listenTimedOut) { [seen] in seen.note("end", $0) }
        expect("end done")
        XCTAssertEqual(seen.texts, ["listen listenTimedOut", "end done"])
        XCTAssertFalse(try bluejay.isListening(to: Self.measurement))
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
    }

    func testEndingWhatNobodyListensToSucceeds() {
        connect()
        bluejay.endListen(to: Self.measurement) { [seen] in seen.note("end", $0) }
        bluejay.endListen(to: Self.measurement)
        expect("end done")
    }

    func testWhatIsMissingIsSaid() {
        connect()
        let missing = CharacteristicIdentifier(uuid: "2A99", service: Self.heartRate)
        let nowhere = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
        bluejay.read(from: missing) { [seen] (result: ReadResult<Data>) in
            guard case .failure(let error) = result else { return }
            seen.note("\(error as? BluejayError == .missingCharacteristic(missing))")
        }
        bluejay.listen(to: nowhere) { [seen] (result: ReadResult<Data>) in
            guard case .failure(let error) = result else { return }
            seen.note("\(error as? BluejayError == .missingService(nowhere.service))")
        }
        eventually("the failures") { seen.count == 2 }
        XCTAssertEqual(seen.texts, ["true", "true"])
        XCTAssertEqual(try bluejay.isListening(to: nowhere), false)
    }

    func testARefusalIsThePeripherals() {
        connect()
        strap.writeAnswer = { _ in .error(0x80) }
        bluejay.write(to: Self.location, value: UInt8(1)) { [seen] result in
            guard case .failure(CharacteristicError.writeFailed(let failure)) = result else { return }
            seen.note("\(failure.attError?.rawValue ?? 0)")
        }
        bluejay.listen(to: Self.location) { [seen] (result: ReadResult<Data>) in
            guard case .failure(CharacteristicError.notifyNotSupported) = result else { return }
            seen.note("not supported")
        }
        expect("not supported")
        XCTAssertEqual(seen.texts, ["128", "not supported"])
    }

    func testCancellingASubscriptionThatIsBeingSetUpLeavesNothingBehind() throws {
        connect()
        listen("listen")
        settle()
        bluejay.cancelEverything(shouldDisconnect: false)
        expect("listen cancelled")
        pass(2)
        XCTAssertFalse(try bluejay.isListening(to: Self.measurement))
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
        listen("again")
        awaitSubscription()
        notify([7, 0])
        XCTAssertEqual(seen.texts, ["listen cancelled", "again 7"])
    }

    func testAListenIsForOneConnection() {
        connect()
        listen("listen")
        awaitSubscription()
        loseLink()
        eventually("the connection") { bluejay.isConnected }
        pass(3)
        XCTAssertEqual(simulator.subscriptions(to: .uuid("2A37"), at: Self.address), [])
        listen("again")
        awaitSubscription()
        notify([3, 0])
        XCTAssertEqual(seen.texts, ["listen notConnected", "again 3"])
    }
}
