import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// Each request of a central is answered once, whatever happens.
final class RespondingTests: PeripheralStage {
    private typealias Request = (request: ATTRequest, central: Central)

    private var measurement = MutableCharacteristic(uuid: "2A37")
    private var control = MutableCharacteristic(uuid: "2A39")

    private func begin(_ properties: CBCharacteristicProperties = [.write]) throws -> CentralLink {
        let service = Self.heart()
        control = MutableCharacteristic(uuid: "2A39", properties: properties, permissions: [.writeable])
        service.characteristics[1] = control
        measurement = service.characteristics[0]
        try serve(service)
        return phone()
    }

    /// A central that has written, and the request of the application.
    private func request(_ bytes: [UInt8] = [1]) throws -> (CentralLink, Elements<Request>, CentralRequest) {
        let phone = try begin()
        let requests = Elements(control.startRespondingToWriteRequests())
        let written = phone.write(bytes, to: "2A39")
        wait { requests.count == 1 }
        return (phone, requests, written)
    }

    func testAWriteIsAnsweredByTheApplication() throws {
        let phone = try begin()
        control.startRespondingToWriteRequests().onSuccess(context: ImmediateContext()) { [control] request, central in
            guard request.value?.count == 1 else {
                control.respondToRequest(request, withResult: CBATTError.invalidAttributeValueLength)
                return
            }
            control.value = request.value
            control.respondToRequest(request, withResult: CBATTError.success)
        }
        XCTAssertEqual(try result(of: phone.write([7], to: "2A39"))?.get(), [])
        XCTAssertEqual(control.value, Data([7]))
        XCTAssertEqual(result(of: phone.write([7, 8], to: "2A39")), .failure(.attribute(0x0D)))
        XCTAssertEqual(control.value, Data([7]))
    }

    func testARequestSaysWhatAndFromWhom() throws {
        let (_, requests, written) = try request([1, 2])
        let (request, central) = requests.values[0]
        XCTAssertEqual(request.characteristicUUID, CBUUID(string: "2A39"))
        XCTAssertEqual(request.value, Data([1, 2]))
        XCTAssertEqual(request.offset, 0)
        XCTAssertEqual(central.maximumUpdateValueLength, 244)
        XCTAssertEqual(central.address?.description, "C0:FF:EE:00:CE:01")
        XCTAssertFalse(request.isRead)
        XCTAssertTrue(control.respondToRequest(request, withResult: .success))
        XCTAssertEqual(try result(of: written)?.get(), [])
    }

    func testARequestIsAnsweredOnce() throws {
        let (_, requests, written) = try request()
        let request = requests.values[0].request
        XCTAssertFalse(measurement.respondToRequest(request, withResult: .success), "Not one of its own.")
        XCTAssertTrue(control.respondToRequest(request, withResult: .insufficientAuthorization))
        XCTAssertFalse(control.respondToRequest(request, withResult: .success))
        XCTAssertEqual(result(of: written), .failure(.attribute(0x08)))
    }

    func testAWriteThatNobodyAsksForIsRefusedAtOnce() throws {
        let phone = try begin()
        XCTAssertEqual(result(of: phone.write([1], to: "2A39"), within: 1), .failure(.attribute(0x06)))
    }

    func testAWriteThatIsNotAnsweredIsRefusedInTime() throws {
        let phone = try begin()
        let requests = Elements(control.startRespondingToWriteRequests())
        let began = simulator.seconds
        XCTAssertEqual(result(of: phone.write([1], to: "2A39")), .failure(.attribute(0x0E)))
        XCTAssertEqual(simulator.seconds - began, 4, accuracy: 0.2)
        XCTAssertFalse(control.respondToRequest(requests.values[0].request, withResult: .success), "Too late.")
    }

    func testAWriteThatAStreamHasNoRoomForIsRefusedInTime() throws {
        let phone = try begin()
        _ = control.startRespondingToWriteRequests(capacity: 0)
        XCTAssertEqual(result(of: phone.write([1], to: "2A39")), .failure(.attribute(0x0E)))
    }

    func testALongWriteIsOneRequest() throws {
        let phone = try begin()
        let requests = Elements(control.startRespondingToWriteRequests())
        let value = (0..<400).map { UInt8(truncatingIfNeeded: $0) }
        let written = phone.write(value, to: "2A39")
        wait { requests.count == 1 }
        XCTAssertEqual(requests.values[0].request.value, Data(value))
        XCTAssertTrue(control.respondToRequest(requests.values[0].request, withResult: .success))
        XCTAssertEqual(try result(of: written)?.get(), [])
        XCTAssertEqual(requests.count, 1)
    }

    func testWritesWithoutResponseComeToo() throws {
        let phone = try begin([.writeWithoutResponse])
        let requests = Elements(control.startRespondingToWriteRequests())
        for number in 0..<10 { phone.write([UInt8(number)], to: "2A39", type: .command) }
        wait { requests.count == 10 }
        XCTAssertEqual(requests.values.map { $0.request.value }, (0..<10).map { Data([UInt8($0)]) })
        XCTAssertFalse(requests.values[0].request.expectsAnswer)
        XCTAssertFalse(control.respondToRequest(requests.values[0].request, withResult: .success))
    }

    func testWritesWithoutResponseComeOverASocket() throws {
        let service = MutableService(uuid: "180D")
        control = MutableCharacteristic(uuid: "2A39", properties: [.writeWithoutResponse], permissions: [.writeable])
        control.takesWritesOverSocket = true
        service.characteristics = [control]
        try serve(service)
        let phone = phone()
        let requests = Elements(control.startRespondingToWriteRequests())
        for number in 0..<10 { phone.write([UInt8(number)], to: "2A39", type: .command) }
        wait { requests.count == 10 }
        XCTAssertEqual(requests.values.map { $0.request.value }, (0..<10).map { Data([UInt8($0)]) })
    }

    func testStoppingRefusesWhatComesThen() throws {
        let (phone, requests, written) = try request()
        control.stopRespondingToWriteRequests()
        XCTAssertTrue(
            control.respondToRequest(requests.values[0].request, withResult: .success), "What came before is answered.")
        XCTAssertEqual(try result(of: written)?.get(), [])
        XCTAssertEqual(result(of: phone.write([2], to: "2A39")), .failure(.attribute(0x06)))
        XCTAssertEqual(requests.count, 1)
        let again = Elements(control.startRespondingToWriteRequests())
        phone.write([3], to: "2A39")
        wait { again.count == 1 }
    }

    func testASecondCallAnswersTheSameStream() throws {
        let phone = try begin()
        let first = Elements(control.startRespondingToWriteRequests())
        let second = Elements(control.startRespondingToWriteRequests())
        phone.write([1], to: "2A39")
        wait { first.count == 1 && second.count == 1 }
    }

    func testWithoutAManagerThereAreNoRequests() {
        let elements = Elements(control.startRespondingToWriteRequests())
        XCTAssertEqual(elements.failures, ["\(MutableCharacteristicError.unconfigured)"])
        XCTAssertEqual(
            Elements(control.startRespondingToReadRequests()).failures, ["\(MutableCharacteristicError.unconfigured)"])
    }

    func testReadsMayBeAnsweredByTheApplication() throws {
        let phone = try begin()
        let requests = Elements(measurement.startRespondingToReadRequests())
        var read = phone.read("2A37")
        wait { requests.count == 1 }
        XCTAssertNil(requests.values[0].request.value)
        XCTAssertTrue(measurement.respondToRequest(requests.values[0].request, withValue: Data([9, 9])))
        XCTAssertEqual(try result(of: read)?.get(), [9, 9])
        XCTAssertEqual(measurement.value, Data([0, 60]))

        read = phone.read("2A37")
        wait { requests.count == 2 }
        XCTAssertTrue(measurement.respondToRequest(requests.values[1].request, withResult: .success))
        XCTAssertEqual(try result(of: read)?.get(), [0, 60])

        read = phone.read("2A37")
        wait { requests.count == 3 }
        let custom = try XCTUnwrap(CBATTError.Code(rawValue: 0x81))
        XCTAssertTrue(measurement.respondToRequest(requests.values[2].request, withResult: custom))
        XCTAssertEqual(result(of: read), .failure(.attribute(0x81)))

        XCTAssertEqual(result(of: phone.read("2A37")), .failure(.attribute(0x0E)), "No response in time.")
        measurement.stopRespondingToReadRequests()
        XCTAssertEqual(try result(of: phone.read("2A37"))?.get(), [0, 60])
    }

    func testALongReadIsOneRequest() throws {
        let phone = try begin()
        let value = (0..<500).map { UInt8(truncatingIfNeeded: $0) }
        let requests = Elements(measurement.startRespondingToReadRequests())
        let read = phone.read("2A37")
        wait { requests.count == 1 }
        measurement.respondToRequest(requests.values[0].request, withValue: Data(value))
        XCTAssertEqual(try result(of: read)?.get(), value)
        XCTAssertEqual(requests.count, 1)
    }

    func testWhatPermissionsDoNotAllowIsRefused() throws {
        let service = MutableService(uuid: "180D")
        service.characteristics = [
            MutableCharacteristic(uuid: "2A37", properties: [.read, .write], permissions: [], value: Data([1]))
        ]
        try serve(service)
        _ = service.characteristics[0].startRespondingToWriteRequests()
        let phone = phone()
        XCTAssertEqual(result(of: phone.read("2A37")), .failure(.attribute(0x02)))
        XCTAssertEqual(result(of: phone.write([1], to: "2A37")), .failure(.attribute(0x03)))
    }

    func testTheDaemonsDeathLeavesNoRequestOpen() throws {
        let (_, requests, _) = try request()
        simulator.simulateDaemonDeath()
        simulator.advance(by: 1)
        _ = control.respondToRequest(requests.values[0].request, withResult: .success)
        simulator.simulateDaemonReturn()
        wait(30) { self.simulator.advertisements.count == 1 }
        let again = self.phone()
        let written = again.write([2], to: "2A39")
        wait { requests.count == 2 }
        XCTAssertTrue(control.respondToRequest(requests.values[1].request, withResult: .success))
        XCTAssertEqual(try result(of: written)?.get(), [])
    }

    func testARemovalAnswersWhatIsOpen() throws {
        let (_, requests, written) = try request()
        manager.removeAllServices()
        XCTAssertNotNil(result(of: written, within: 2))
        XCTAssertFalse(control.respondToRequest(requests.values[0].request, withResult: .success))
    }

    func testACentralThatGoesInTheMidstHurtsNobody() throws {
        let (phone, requests, _) = try request()
        phone.disconnect()
        simulator.advance(by: 1)
        _ = control.respondToRequest(requests.values[0].request, withResult: .success)
        simulator.advance(by: 10)
        let second = self.phone("C0:FF:EE:00:CE:02")
        let written = second.write([2], to: "2A39")
        wait { requests.count == 2 }
        XCTAssertTrue(control.respondToRequest(requests.values[1].request, withResult: .success))
        XCTAssertEqual(try result(of: written)?.get(), [])
    }
}
