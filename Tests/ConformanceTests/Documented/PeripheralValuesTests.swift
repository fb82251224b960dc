import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case unlikely
}

final class PeripheralValuesTests: PeripheralCase, @unchecked Sendable {
    private typealias Enabled = TISensorTag.AccelerometerService.Enabled
    private typealias Acceleration = TISensorTag.AccelerometerService.Data

    private func enabled() -> MutableCharacteristic {
        MutableCharacteristic(profile: RawCharacteristicProfile<Enabled>())
    }

    private func notifying<Value>(_ profile: RawArrayCharacteristicProfile<Value>) -> MutableCharacteristic {
        MutableCharacteristic(profile: profile)
    }

    /// A characteristic by hand that notifies.
    private func plain() -> MutableCharacteristic {
        MutableCharacteristic(uuid: "2A37", properties: [.read, .notify], permissions: [.readable])
    }

    // MARK: Value

    func testTheValueMayBeSetAndRead() {
        let characteristic = enabled()
        let value: Data? = characteristic.value
        XCTAssertEqual(value, Enabled.no.serialize(), "The profile's.")
        characteristic.value = Data([1])
        XCTAssertEqual(characteristic.value, Data([1]))
    }

    func testTheValueIsSetAndReadAsDocumented() throws {
        let manager = poweredPeripheralManager()
        let characteristic = try served(enabled(), by: manager)

        characteristic.value = Serde.serialize(Enabled.yes)

        guard let data = characteristic.value, let value: Enabled = Serde.deserialize(data) else {
            return XCTFail("It has none.")
        }
        XCTAssertEqual(value, .yes)
        XCTAssertEqual(try answer(to: visitor().read("F000AA12-0451-4000-B000-000000000000"))?.get(), [1])
        withExtendedLifetime(manager) {}
    }

    // MARK: Updates

    func testUpdatesOfAllFamiliesReachASubscriber() throws {
        let manager = poweredPeripheralManager()
        let characteristic = try served(plain(), by: manager)
        let visitor = visitor()
        _ = answer(to: visitor.subscribe(to: "2A37"))

        try characteristic.update(withData: Data([1]))
        try characteristic.update(withString: ["Unknown": "02"])
        try characteristic.update(UInt16(3))
        try characteristic.update(Enabled.yes)
        try characteristic.update(Acceleration(xRaw: 1, yRaw: 2, zRaw: 3))
        try characteristic.update(Pair(rawValue1: 4, rawValue2: 5))
        try characteristic.update(PairOfArrays(rawValue1: [6], rawValue2: [7]))

        eventually("the updates") { visitor.values.count == 7 }
        XCTAssertEqual(
            visitor.values.map(\.bytes), [[1], [2], [3, 0], [1], [1, 2, 3], [4, 5], [6, 7]])
        withExtendedLifetime(manager) {}
    }

    func testUpdatesThrowWhereTheyCannotBeSent() throws {
        XCTAssertThrowsError(try plain().update(withData: Data())) { error in
            guard case MutableCharacteristicError.unconfigured = error else { return XCTFail("\(error)") }
        }
        let manager = poweredPeripheralManager()
        let mute = try served(enabled(), by: manager)
        XCTAssertThrowsError(try mute.update(withData: Data())) { error in
            guard case MutableCharacteristicError.notifyNotSupported = error else { return XCTFail("\(error)") }
        }
        let other = MutableService(uuid: "180D")
        other.characteristics = [plain()]
        try outcome(manager.add(other))
        XCTAssertThrowsError(try other.characteristics[0].update(withString: ["Unknown": "no"])) { error in
            guard case MutableCharacteristicError.notSerializable = error else { return XCTFail("\(error)") }
        }
    }

    func testUpdatesWaitForASubscriber() throws {
        let manager = poweredPeripheralManager()
        let characteristic = try served(plain(), by: manager)
        try characteristic.update(withData: Data([1]))
        try characteristic.update(withData: Data([2]))
        XCTAssertEqual(characteristic.pendingUpdates, [Data([1]), Data([2])])
        XCTAssertFalse(characteristic.isUpdating)
        XCTAssertEqual(characteristic.value, Data([2]))
        let visitor = visitor()
        _ = answer(to: visitor.subscribe(to: "2A37"))
        eventually("the updates") { visitor.values.map(\.bytes) == [[1], [2]] }
        XCTAssertTrue(characteristic.isUpdating)
        XCTAssertEqual(characteristic.subscribers.count, 1)
        withExtendedLifetime(manager) {}
    }

    func testAnUpdateIsSentAsDocumented() throws {
        let manager = poweredPeripheralManager()
        let characteristic = try served(plain(), by: manager)

        let updateStatus = try characteristic.updateValue(Enabled.no)

        XCTAssertFalse(updateStatus, "No central has subscribed.")
        XCTAssertEqual(characteristic.value, Data([0]))
        withExtendedLifetime(manager) {}
    }

    // MARK: Write requests

    func testWriteRequestsAreAStream() throws {
        let manager = poweredPeripheralManager()
        let characteristic = try served(enabled(), by: manager)
        let stream: FutureStream<(request: any CBATTRequestInjectable, central: any CBCentralInjectable)> =
            characteristic.startRespondingToWriteRequests()
        stream.onSuccess { request, central in
            self.seen.note("\(request.characteristicUUID) \(central.maximumUpdateValueLength)")
            characteristic.respondToRequest(request, withResult: CBATTError.success)
        }
        XCTAssertEqual(
            try answer(to: visitor().write([1], to: "F000AA12-0451-4000-B000-000000000000"))?.get(), [])
        XCTAssertEqual(seen.texts, ["F000AA12-0451-4000-B000-000000000000 244"])
        withExtendedLifetime(manager) {}
    }

    func testWriteRequestsFailWithoutAManager() {
        enabled().startRespondingToWriteRequests().onFailure { error in
            guard case MutableCharacteristicError.unconfigured = error else { return }
            self.seen.note("unconfigured")
        }
        eventually("unconfigured") { seen.contains("unconfigured") }
    }

    func testWriteRequestsAreAnsweredAsDocumented() throws {
        let manager = poweredPeripheralManager()
        let characteristic = try served(enabled(), by: manager)

        let writeResponseFuture = characteristic.startRespondingToWriteRequests(capacity: 10)

        writeResponseFuture.onSuccess { [weak characteristic] (request, _) in
            guard let characteristic = characteristic else {
                return
            }
            guard let value = request.value, value.count == 1 else {
                characteristic.respondToRequest(request, withResult: CBATTError.invalidAttributeValueLength)
                return
            }
            characteristic.value = request.value
            characteristic.respondToRequest(request, withResult: CBATTError.success)
        }

        let visitor = visitor()
        let uuid: AttributeSelector = "F000AA12-0451-4000-B000-000000000000"
        XCTAssertEqual(try answer(to: visitor.write([1], to: uuid))?.get(), [])
        XCTAssertEqual(characteristic.value, Data([1]))
        XCTAssertEqual(answer(to: visitor.write([1, 2], to: uuid)), .failure(.attribute(0x0D)))

        characteristic.stopRespondingToWriteRequests()

        XCTAssertEqual(answer(to: visitor.write([0], to: uuid)), .failure(.attribute(0x06)))
        XCTAssertEqual(characteristic.value, Data([1]))
        withExtendedLifetime(manager) {}
    }
}

private struct Pair: RawPairDeserializable {
    static let uuid = "2A37"
    let rawValue1: UInt8
    let rawValue2: UInt8

    init(rawValue1: UInt8, rawValue2: UInt8) { (self.rawValue1, self.rawValue2) = (rawValue1, rawValue2) }
}

private struct PairOfArrays: RawArrayPairDeserializable {
    static let uuid = "2A37"
    static let size1 = 1
    static let size2 = 1
    let rawValue1: [UInt8]
    let rawValue2: [UInt8]

    init(rawValue1: [UInt8], rawValue2: [UInt8]) { (self.rawValue1, self.rawValue2) = (rawValue1, rawValue2) }
}
