import BlueCapKit
import BlueZSimulator
import BlueCapFutures
import XCTest

/// Reading, writing and subscribing by identifier, without anything having been discovered.
final class IdentifierOperationTests: XCTestCase {
    private let heartRate = ServiceIdentifier(uuid: "180D")
    private let rate = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
    private let location = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
    private let answers = ChosenAnswers()

    private func stage(link: VirtualLink = VirtualLink(), more: [VirtualService] = []) throws -> AttributeStage {
        try AttributeStage(
            [
                VirtualService(
                    "180D",
                    characteristics: [
                        VirtualCharacteristic("2A37", [.notify], value: [0, 72]),
                        VirtualCharacteristic("2A38", [.read, .write], value: [1]),
                    ])
            ] + more, link: link, behavior: answers)
    }

    // MARK: Finding

    func testAReadDiscoversWhatItNeeds() throws {
        let stage = try stage().connected()
        let data: Future<Data> = stage.peripheral.read(location)
        XCTAssertEqual(try stage.wait(data), Data([1]))
        XCTAssertEqual(stage.peripheral.services.map(\.uuid.uuidString), ["180D"])
        XCTAssertEqual(stage.peripheral.services.first?.characteristics.map(\.uuid.uuidString), ["2A38"])
    }

    func testATextIsWrittenAndRead() throws {
        let stage = try stage().connected()
        try stage.wait(stage.peripheral.write("Grüße", to: location))
        XCTAssertEqual(answers.written, [Array("Grüße".utf8)])
        answers.answerReads(of: "2A38", .value(Array("Model 7\0\0".utf8)))
        let text: Future<String> = stage.peripheral.read(location)
        XCTAssertEqual(try stage.wait(text), "Model 7")
    }

    func testManyAtOnceShareOneDiscovery() throws {
        let stage = try stage().connected()
        let before = stage.simulator.statistics.count(of: "GetManagedObjects")
        let found = (0..<50).map { _ in stage.peripheral.characteristic(location) }
        let services = (0..<50).map { _ in stage.peripheral.service(heartRate) }
        let characteristics = try found.map { try stage.wait($0) }
        XCTAssertTrue(characteristics.allSatisfy { $0 === characteristics[0] })
        XCTAssertEqual(
            try services.map { try stage.wait($0) }.map(\.uuid.uuidString), .init(repeating: "180D", count: 50))
        XCTAssertEqual(stage.simulator.statistics.count(of: "GetManagedObjects"), before)
    }

    func testWhatIsKnownIsFoundWithoutTime() throws {
        let stage = try stage()
        try stage.explore()
        let before = stage.simulator.seconds
        let characteristic = stage.peripheral.characteristic(location)
        XCTAssertEqual(try stage.wait(characteristic), try stage.characteristic("2A38"))
        XCTAssertEqual(stage.simulator.seconds, before, accuracy: 0.001)
    }

    func testWithoutALinkItFailsAtOnce() throws {
        let stage = try stage()
        let data: Future<Data> = stage.peripheral.read(location)
        XCTAssertEqual(stage.failure(of: data, limit: 0.1) as? PeripheralError, .disconnected)
    }

    func testALostLinkFailsWhatIsBeingLookedFor() throws {
        let stage = try stage(link: VirtualLink(resolveLatency: 5)).connected()
        let data: Future<Data> = stage.peripheral.read(location)
        stage.simulator.advance(by: 1)
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertEqual(stage.failure(of: data) as? PeripheralError, .disconnected)
    }

    func testAServiceThatIsNotThereIsNamedWithThoseThatAre() throws {
        let stage = try stage().connected()
        let battery = CharacteristicIdentifier(uuid: "2A19", service: ServiceIdentifier(uuid: "180F"))
        let error = stage.failure(of: stage.peripheral.characteristic(battery)) as? PeripheralError
        guard case .serviceNotFound(CBUUID(string: "180F"), let available)? = error else {
            return XCTFail("\(String(describing: error))")
        }
        XCTAssertTrue(available.contains(CBUUID(string: "180D")))
        let text = error?.localizedDescription ?? ""
        XCTAssertTrue(text.contains("180F (Battery)") && text.contains("180D (Heart Rate)"), text)
    }

    func testACharacteristicThatIsNotThereIsNamedWithThoseThatAre() throws {
        let stage = try stage().connected()
        let control = CharacteristicIdentifier(uuid: "2A39", service: heartRate)
        XCTAssertEqual(
            stage.failure(of: stage.peripheral.characteristic(control)) as? ServiceError,
            .characteristicNotFound(
                CBUUID(string: "2A39"), service: CBUUID(string: "180D"),
                available: [CBUUID(string: "2A37"), CBUUID(string: "2A38")]))
    }

    func testTheErrorNamesAServiceThatBlueZ566DoesNotExport() throws {
        let stage = try AttributeStage([VirtualService("180D")], bluez: .v5_66).connected()
        let access = ServiceIdentifier(uuid: "1800")
        let text = stage.failure(of: stage.peripheral.service(access))?.localizedDescription ?? ""
        XCTAssertTrue(text.contains("does not export services of this kind"), text)
    }

    func testACharacteristicIsFoundInTheSecondServiceOfItsKind() throws {
        let stage = try stage(more: [
            VirtualService("180D", characteristics: [VirtualCharacteristic("2A39", [.read], value: [9])])
        ])
        stage.connect()
        let data: Future<Data> = stage.peripheral.read(CharacteristicIdentifier(uuid: "2A39", service: heartRate))
        XCTAssertEqual(try stage.wait(data), Data([9]))
    }

    func testAMalformedIdentifierFailsAtOnce() throws {
        let stage = try stage().connected()
        let wrong = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "18OD"))
        let futures: [Future<Void>] = [
            stage.peripheral.read(wrong).map(context: ImmediateContext()) { (_: Data) in },
            stage.peripheral.write(Data([1]), to: wrong),
            stage.peripheral.service(wrong.service).map(context: ImmediateContext()) { _ in },
            stage.peripheral.stopNotifications(wrong),
        ]
        for future in futures {
            guard case PeripheralError.invalidArgument(let text)? = stage.failure(of: future, limit: 0.1) else {
                return XCTFail("no failure")
            }
            XCTAssertTrue(text.contains("18OD"), text)
        }
    }

    // MARK: Time

    func testTheTimeIsUpWhileTheServicesAreNotKnown() throws {
        let stage = try stage(link: VirtualLink(resolveLatency: 20)).connected()
        let data: Future<Data> = stage.peripheral.read(location, timeout: 2)
        let before = stage.simulator.seconds
        XCTAssertEqual(stage.failure(of: data) as? PeripheralError, .serviceDiscoveryTimeout)
        XCTAssertEqual(stage.simulator.seconds - before, 2, accuracy: 0.1)
    }

    func testTheTimeIsForDiscoveryAndReadTogether() throws {
        let stage = try stage(link: VirtualLink(resolveLatency: 3)).connected()
        answers.answerReads(of: "2A38", .never)
        let before = stage.simulator.seconds
        let data: Future<Data> = stage.peripheral.read(location, timeout: 5)
        XCTAssertEqual(stage.failure(of: data) as? CharacteristicError, .readTimeout)
        XCTAssertEqual(stage.simulator.seconds - before, 5, accuracy: 0.1)
    }

    // MARK: Values

    func testValuesAreReadAndWrittenAsWhatTheyAre() throws {
        let stage = try stage().connected()
        try stage.wait(stage.peripheral.write(UInt8(3), to: location))
        let value: Future<UInt8> = stage.peripheral.read(location)
        XCTAssertEqual(try stage.wait(value), 3)
        let wide: Future<UInt32> = stage.peripheral.read(location)
        XCTAssertEqual(stage.failure(of: wide) as? CharacteristicError, .notDeserializable(Data([3])))
    }

    func testAReadYieldsWhatItBroughtAndNotWhatCameLater() throws {
        let stage = try stage().connected()
        answers.answerReads(of: "2A38", .value([7]), .value([8]))
        let first: Future<Data> = stage.peripheral.read(location)
        let second: Future<Data> = stage.peripheral.read(location)
        try stage.wait(second)
        XCTAssertEqual([try stage.wait(first), try stage.wait(second)], [Data([7]), Data([8])])
    }

    func testOperationsKeepTheirOrderAlsoWhileTheServicesAreNotKnown() throws {
        let stage = try stage().connected()
        let writes = (0..<20).map { stage.peripheral.write(Data([$0]), to: location) }
        for write in writes { try stage.wait(write) }
        XCTAssertEqual(answers.written, (0..<20).map { [$0] })
    }

    func testWhatTheCharacteristicCannotDoIsRefused() throws {
        let stage = try stage().connected()
        let data: Future<Data> = stage.peripheral.read(rate)
        XCTAssertEqual(stage.failure(of: data) as? CharacteristicError, .readNotSupported)
    }

    // MARK: Notifications

    private func isSubscribed(on stage: AttributeStage) -> Bool {
        stage.peripheral.service(CBUUID(string: "180D"))?.characteristic(CBUUID(string: "2A37"))?.isNotifying ?? false
    }

    func testNotificationsComeWithoutAnythingElseBeingAsked() throws {
        let stage = try stage().connected()
        let received = Locked<[Data]>([])
        let stream = stage.peripheral.notifications(rate)
        stream.onSuccess(context: ImmediateContext()) { data in received.withLock { $0.append(data) } }
        XCTAssertTrue(stage.simulator.advance(until: { isSubscribed(on: stage) }, limit: 10))
        stage.simulator.notify(AttributeStage.address, characteristic: .uuid("2A37"), value: [0, 80])
        XCTAssertTrue(stage.simulator.advance(until: { received.withLock { $0.count } == 1 }, limit: 5))
        XCTAssertEqual(received.withLock { $0 }, [Data([0, 80])])
        try stage.wait(stage.peripheral.stopNotifications(rate))
        XCTAssertFalse(try stage.characteristic("2A37").isNotifying)
        XCTAssertFalse(stream.success(Data()), "The stream has ended.")
    }

    func testAStreamThatCannotBeginEndsWithTheReason() throws {
        let stage = try stage().connected()
        let failures = Locked<[String]>([])
        let stream = stage.peripheral.notifications(location)
        stream.onFailure(context: ImmediateContext()) { error in failures.withLock { $0.append("\(error)") } }
        XCTAssertTrue(stage.simulator.advance(until: { !failures.withLock { $0 }.isEmpty }, limit: 5))
        XCTAssertEqual(failures.withLock { $0 }, ["\(CharacteristicError.notifyNotSupported)"])
        XCTAssertFalse(stream.success(Data()))
    }

    func testASubscriptionIsEndedWithoutALink() throws {
        let stage = try stage().connected()
        let stream = stage.peripheral.notifications(rate)
        XCTAssertTrue(stage.simulator.advance(until: { isSubscribed(on: stage) }, limit: 10))
        stage.simulator.simulateLinkLoss(of: AttributeStage.address)
        XCTAssertTrue(stage.simulator.advance(until: { !stage.isLinked }, limit: 5))
        try stage.wait(stage.peripheral.stopNotifications(rate))
        stage.connect()
        stage.simulator.advance(by: 5)
        XCTAssertEqual(stage.simulator.subscriptions(to: .uuid("2A37"), at: AttributeStage.address), [])
        withExtendedLifetime(stream) {}
    }
}
