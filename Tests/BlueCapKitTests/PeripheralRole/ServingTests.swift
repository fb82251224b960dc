import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// Services come and go.
final class ServingTests: PeripheralStage {
    func testCentralsFindAndReadWhatWasAdded() throws {
        let service = try serve(Self.heart())
        XCTAssertEqual(manager.services, [service])
        XCTAssertTrue(service.isAdded)
        let phone = phone()
        XCTAssertEqual(try result(of: phone.read("2A37"))?.get(), [0, 60])
        service.characteristics[0].value = Data([0, 61])
        XCTAssertEqual(try result(of: phone.read("2A37"))?.get(), [0, 61])
    }

    func testAServiceThatIsAddedBeforePowerComesIsAddedThen() throws {
        simulator.simulatePowerOff()
        let manager = unreadyManager()
        let added = manager.add(Self.heart())
        simulator.advance(by: 3)
        XCTAssertEqual(manager.state, .poweredOff)
        XCTAssertNil(added.result)
        simulator.simulatePowerOn()
        try value(of: added)
        XCTAssertEqual(offered(), ["180D"])
    }

    func testAServiceWaitsForTenSecondsAndFailsWithTheState() throws {
        simulator.simulatePowerOff()
        let manager = unreadyManager()
        let service = Self.heart()
        let added = manager.add(service)
        simulator.advance(by: 9.9)
        XCTAssertNil(added.result)
        XCTAssertEqual(managerError(of: added, within: 0.2), .notPoweredOn(.poweredOff))
        XCTAssertEqual(manager.services, [])
        XCTAssertFalse(service.isAdded)
        simulator.simulatePowerOn()
        try value(of: manager.add(service))
    }

    func testAServiceThatIsRefusedFailsAloneAndTheOthersStay() throws {
        let heart = Self.heart()
        let generic = MutableService(uuid: "1801")
        generic.characteristics = [MutableCharacteristic(uuid: "2A05", properties: [.read])]
        let added = manager.add(heart)
        let refused = manager.add(generic)
        let battery = Self.battery()
        let alsoAdded = manager.add(battery)
        try value(of: added)
        try value(of: alsoAdded)
        guard case .serviceRefused(let failure)? = managerError(of: refused) else {
            return XCTFail("\(String(describing: refused.result))")
        }
        XCTAssertEqual(failure.message, "Failed to create entry in database")
        XCTAssertEqual(manager.services, [heart, battery])
        XCTAssertEqual(offered(), ["180D", "180F"])
    }

    func testServicesComeAndGoWithoutDisturbingOthers() throws {
        let heart = try serve(Self.heart())
        let phone = subscriber()
        let handles = simulator.applications.flatMap(\.services).map(\.handle)

        let battery = Self.battery()
        try value(of: manager.add(battery))
        XCTAssertEqual(offered(), ["180D", "180F"])
        XCTAssertTrue(heart.characteristics[0].hasSubscribers, "The central is still subscribed.")
        XCTAssertEqual(simulator.advertisements.count, 1)
        manager.remove(battery)
        simulator.advance(by: 1)
        XCTAssertEqual(offered(), ["180D"])
        XCTAssertEqual(simulator.applications.flatMap(\.services).map(\.handle), handles)
        try heart.characteristics[0].update(withData: Data([0, 70]))
        wait { phone.values.count == 1 }
        XCTAssertFalse(battery.isAdded)
    }

    func testAServiceThatWasRemovedCanBeAddedAtOnce() throws {
        let service = Self.heart()
        try value(of: manager.add(service))
        manager.removeAllServices()
        XCTAssertEqual(manager.services, [])
        let again = manager.add(service)
        try value(of: again)
        XCTAssertEqual(manager.services, [service])
        XCTAssertEqual(offered(), ["180D"])
        XCTAssertNoThrow(try service.characteristics[0].update(withData: Data([1])))
    }

    func testAddingAgainSucceedsWithTheFirst() throws {
        let service = Self.heart()
        let first = manager.add(service)
        let second = manager.add(service)
        try value(of: first)
        try value(of: second)
        try value(of: manager.add(service), within: 0.01)
        XCTAssertEqual(offered(), ["180D"])
    }

    func testARemovalFailsAnAddThatIsUnderWay() {
        let service = Self.heart()
        let added = manager.add(service)
        manager.remove(service)
        XCTAssertEqual(managerError(of: added), .serviceRemoved)
        simulator.advance(by: 1)
        XCTAssertEqual(offered(), [])
    }

    func testAServiceBelongsToOneManager() throws {
        let first = makeManager()
        let second = makeManager()
        let service = Self.heart()
        try value(of: first.add(service))
        XCTAssertEqual(managerError(of: second.add(service)), .serviceInUse)
        first.remove(service)
        simulator.advance(by: 1)
        try value(of: second.add(service))
    }

    func testACharacteristicBelongsToOneService() throws {
        let characteristic = MutableCharacteristic(uuid: "2A37")
        let first = MutableService(uuid: "180D")
        first.characteristics = [characteristic]
        let second = MutableService(uuid: "180F")
        second.characteristics = [characteristic]
        XCTAssertEqual(managerError(of: manager.add(first)), .serviceInUse)
        try value(of: manager.add(second))
        let twice = MutableService(uuid: "180A")
        let name = MutableCharacteristic(uuid: "2A29")
        twice.characteristics = [name, name]
        guard case .invalidService? = managerError(of: manager.add(twice)) else { return XCTFail("It was taken.") }
    }

    func testAServiceThatBlueZCannotOfferIsNotAdded() throws {
        func refusal(_ change: (MutableCharacteristic) -> Void) -> String? {
            let characteristic = MutableCharacteristic(uuid: "AA01", properties: [.read, .notify])
            change(characteristic)
            let service = MutableService(uuid: "AA00")
            service.characteristics = [characteristic]
            guard case .invalidService(let text)? = managerError(of: manager.add(service)) else { return nil }
            return text
        }
        for uuid in ["2900", "2902", "00002902-0000-1000-8000-00805f9b34fb"] {
            let short = CBUUID(string: uuid).uuidString
            XCTAssertEqual(
                refusal { $0.descriptors = [MutableDescriptor(uuid: CBUUID(string: uuid))] },
                "The descriptor \(short) of the characteristic AA01 cannot be added: "
                    + "BlueZ adds it where the properties need it.")
        }
        let text = MutableDescriptor.userDescription("Level")
        XCTAssertEqual(
            refusal { $0.descriptors = [text, text] },
            "The descriptor 2901 of the characteristic AA01 is in the service AA00 twice: make one for each place.")
        XCTAssertEqual(
            refusal { $0.value = Data(count: 513) },
            "The value of the characteristic AA01 has 513 bytes, and an attribute at most 512.")
        XCTAssertEqual(
            refusal { $0.descriptors = [MutableDescriptor(uuid: CBUUID(string: "2901"), value: Data(count: 513))] },
            "The value of the descriptor 2901 of the characteristic AA01 has 513 bytes, and an attribute at most 512.")
        XCTAssertEqual(manager.services, [])
    }

    func testAValueThatHasBecomeTooLongIsNotCut() throws {
        let heart = Self.heart()
        try serve(heart, Self.battery())
        let phone = phone()
        heart.characteristics[0].value = Data(count: 512)
        XCTAssertEqual(try result(of: phone.read("2A37"))?.get(), [UInt8](repeating: 0, count: 512))
        heart.characteristics[0].value = Data(count: 513)
        XCTAssertThrowsError(try result(of: phone.read("2A37"))?.get()) { error in
            XCTAssertEqual(error as? CentralLinkError, .attribute(0x0D))
        }
    }

    func testServicesAndHandlesOutliveTheDaemon() throws {
        let (heart, battery) = (Self.heart(), Self.battery())
        try serve(heart, battery)
        let handles = simulator.applications.flatMap(\.services).map(\.handle)
        subscriber()
        let subscribers = Elements(heart.characteristics[0].whenSubscribersChange())
        wait { subscribers.values.last?.count == 1 }

        simulator.simulateDaemonDeath()
        wait { manager.state == .resetting }
        wait { subscribers.values.last?.isEmpty == true }
        try heart.characteristics[0].update(withData: Data([0, 71]))
        XCTAssertEqual(manager.services, [heart, battery])
        XCTAssertTrue(manager.isAdvertising)
        simulator.simulateDaemonReturn()
        wait(30) { self.offered().count == 2 && self.simulator.advertisements.count == 1 }
        XCTAssertEqual(simulator.applications.flatMap(\.services).map(\.handle).sorted(), handles.sorted())

        let again = subscriber()
        wait { again.values.map(\.bytes) == [[0, 71]] }
    }

    func testServicesOutliveTheAdaptersPower() throws {
        try serve(Self.heart())
        simulator.simulatePowerOff()
        simulator.advance(by: 20)
        XCTAssertEqual(manager.state, .poweredOff)
        XCTAssertEqual(manager.services.count, 1)
        simulator.simulatePowerOn()
        wait { self.simulator.advertisements.count == 1 }
        XCTAssertEqual(try result(of: phone().read("2A37"))?.get(), [0, 60])
    }

    func testTheAdapterThatIsNamedServes() throws {
        simulator = Simulator.inProcess(room: .empty, adapters: [VirtualAdapter(), VirtualAdapter(index: 1)])
        let manager = makeManager(adapter: "hci1")
        try value(of: manager.add(Self.heart()))
        XCTAssertEqual(simulator.applications.map(\.adapter), [1])
    }

    func testNothingIsLeftWhenTheManagerGoes() throws {
        var manager: PeripheralManager? = makeManager()
        let service = Self.heart()
        try serve(service, with: try XCTUnwrap(manager))
        let states = Elements(try XCTUnwrap(manager).whenStateChanges())
        manager = nil
        simulator.advance(by: 1)
        XCTAssertEqual(offered(), [])
        XCTAssertEqual(simulator.advertisements, [])
        XCTAssertFalse(service.isAdded)
        XCTAssertEqual(states.values.last, .poweredOn)
        XCTAssertThrowsError(try service.characteristics[0].update(withData: Data([1]))) { error in
            XCTAssertEqual(error as? MutableCharacteristicError, .unconfigured)
        }
        let next = makeManager()
        try value(of: next.add(service))
    }

    func testNothingHoldsWhatAManagerThatHasGoneWasMadeOf() throws {
        weak var session: PeripheralManagerSession?
        weak var service: MutableService?
        weak var characteristic: MutableCharacteristic?
        try
            ({
                let manager = makeManager()
                let served = Self.heart()
                (session, service, characteristic) = (manager.session, served, served.characteristics[0])
                try serve(served, with: manager)
                let phone = subscriber()
                let requests = Elements(served.characteristics[1].startRespondingToWriteRequests())
                phone.write([1], to: "2A39")
                wait { requests.count == 1 }
                try served.characteristics[0].update(withData: Data([1]))
                simulator.advance(by: 0.1)
            })()
        simulator.advance(by: 60)
        XCTAssertNil(session)
        XCTAssertNil(service)
        XCTAssertNil(characteristic)
    }

    func testEveryPromiseIsSettledWhenTheManagerGoes() throws {
        simulator.simulateDaemonDeath()
        var manager: PeripheralManager? = unreadyManager()
        let added = try XCTUnwrap(manager).add(Self.heart())
        let advertising = try XCTUnwrap(manager).startAdvertising("Strap")
        simulator.advance(by: 1)
        manager = nil
        XCTAssertEqual(managerError(of: added, within: 1), .managerEnded)
        XCTAssertEqual(managerError(of: advertising, within: 1), .managerEnded)
    }

    func testAResetRemovesEverythingAndReportsTheStateAgain() throws {
        let service = Self.heart()
        let states = Elements(manager.whenStateChanges())
        try serve(service)
        manager.reset()
        wait { states.values == [.poweredOn, .poweredOn] }
        XCTAssertEqual(manager.services, [])
        XCTAssertFalse(manager.isAdvertising)
        simulator.advance(by: 1)
        XCTAssertEqual(offered(), [])
        try serve(service)
        XCTAssertEqual(offered(), ["180D"])
    }

    func testDescriptorsAreReadAndWritten() throws {
        let service = Self.battery()
        let setting = MutableDescriptor(
            uuid: CBUUID(string: "2908"), value: Data([1, 2]), permissions: [.readable, .writeable])
        service.characteristics[0].descriptors = [
            .userDescription("Level"), .presentationFormat(4, unit: 0x27AD), setting,
        ]
        try serve(service)
        let phone = phone()
        XCTAssertEqual(try result(of: phone.read("2A19", descriptor: "2901"))?.get(), Array("Level".utf8))
        XCTAssertEqual(
            try result(of: phone.read("2A19", descriptor: "2904"))?.get(), [4, 0, 0xAD, 0x27, 1, 0, 0])
        let written = Elements(setting.whenWritten())
        XCTAssertEqual(try result(of: phone.write([3], to: "2A19", descriptor: "2908"))?.get(), [])
        XCTAssertEqual(setting.value, Data([3]))
        XCTAssertEqual(written.values, [Data([3])])
        guard case .failure? = result(of: phone.write([3], to: "2A19", descriptor: "2901")) else {
            return XCTFail("It may not be written.")
        }
    }

    func testWrongOptionsFailWhatIsAskedFor() {
        let manager = PeripheralManager(options: ["PeripheralManagerOptionAdapterKey": 1])
        guard case .invalidOption(let text)? = managerError(of: manager.add(Self.heart())) else {
            return XCTFail("It was taken.")
        }
        XCTAssertTrue(text.contains("PeripheralManagerOptionAdapterKey"))
        XCTAssertEqual(manager.stateExplanation, text)
        XCTAssertEqual(managerError(of: manager.startAdvertising("a")), .invalidOption(text))
    }
}
