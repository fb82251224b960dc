import BlueCapBlueZ
import BlueZSimulator
import BlueCapFutures
import XCTest

@testable import BlueCapKit

/// Moments in which something goes while something else begins.
final class ServingEdgeTests: PeripheralStage {
    /// The centrals disconnect before the adapter disappears, and the application may add a service in response.
    func testAServiceThatIsAddedWhileTheAdapterGoesIsOfferedWhenItReturns() throws {
        try serve(Self.heart())
        let phone = phone()
        let added = Locked<[Future<Void>]>([])
        let battery = Self.battery()
        manager.whenCentralsChange().onSuccess(context: ImmediateContext()) { [weak manager] centrals in
            guard centrals.isEmpty, let manager else { return }
            let future = manager.add(battery)
            added.withLock { $0.append(future) }
        }
        wait { manager.centrals.count == 1 }
        simulator.simulateAdapterRemoval()
        wait { !added.withLock { $0.isEmpty } }
        simulator.advance(by: 3)
        simulator.simulateAdapterAddition()
        try value(of: added.withLock { $0[0] })
        wait { Set(self.offered()) == ["180D", "180F"] }
        withExtendedLifetime(phone) {}
    }

    func testAnAdvertisementIsReleasedAfterItsDuration() throws {
        var data = AdvertisingData(localName: "Short")
        data.timeout = .seconds(2)
        let advertisement = try value(of: manager.startAdvertising(data))
        XCTAssertEqual(try value(of: advertisement.whenEnded()), .timedOut)
        wait { manager.session.core.withLock { $0.advertised.isEmpty } }
        XCTAssertFalse(manager.isAdvertising)
    }

    func testAStopAfterTheManagersEndIsSettled() throws {
        var manager: PeripheralManager? = makeManager()
        var advertisement: RunningAdvertisement? = try value(
            of: try XCTUnwrap(manager).startAdvertising(AdvertisingData(localName: "Strap")))
        manager = nil
        let stopped = try XCTUnwrap(advertisement).stop()
        advertisement = nil
        try value(of: stopped)
        wait { self.simulator.advertisements.isEmpty }
    }

    func testRequestsAreWatchedOverUnderTheNextManagerToo() throws {
        var first: PeripheralManager? = makeManager()
        let service = Self.heart()
        let control = service.characteristics[1]
        try serve(service, with: try XCTUnwrap(first))
        _ = control.startRespondingToWriteRequests()
        phone().write([1], to: "2A39")
        wait { control.core.withLock { $0.requests.count } == 1 }
        first = nil
        wait { !service.isAdded }
        simulator.advance(by: ServerAnswer.limit + 1)

        let second = makeManager()
        try serve(service, with: second)
        _ = control.startRespondingToWriteRequests()
        let phone = phone()
        let began = simulator.seconds
        XCTAssertEqual(result(of: phone.write([1], to: "2A39")), .failure(.attribute(0x0E)))
        XCTAssertEqual(simulator.seconds - began, ServerAnswer.limit, accuracy: 0.3)
        XCTAssertEqual(control.core.withLock { $0.requests.count }, 0)
    }

    /// What is on its way cannot be given up, which is no reason to refuse what a program wants to have sent.
    func testWhereTheOldestMayBeDroppedNothingIsRefused() throws {
        let service = Self.heart([.read, .indicate])
        let measurement = service.characteristics[0]
        measurement.updateQueueLimit = 1
        measurement.updateQueuePolicy = .dropOldest
        try serve(service)
        let phone = subscriber(indications: true)
        for number in UInt8(0)..<50 {
            try measurement.update(withData: Data([number]))
            simulator.advance(by: 0.001)
        }
        try value(of: measurement.whenUpdatesSent())
        XCTAssertEqual(phone.values.last?.bytes, [49])
        XCTAssertEqual(phone.values.count + measurement.droppedUpdates, 50)
    }
}
