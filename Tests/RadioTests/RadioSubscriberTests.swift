import TestSupport
import XCTest

/// Ring 4: our peripheral on `hci1`, and two centrals of ours, on `hci0` and `hci2`.
final class RadioSubscriberTests: XCTestCase {
    private var spare: OwnCentral?

    /// btvirt reports to the peripheral the connection handle that the central has chosen, which is the lowest that is free
    /// there. Two centrals with their first links would have the same handle, so the second one connects to `hci3` before.
    private func second() throws -> OwnCentral {
        try RadioLab.order(.server, "advertise", "hci3", "Spare", "--service", "180F")
        let stage = RadioStage(centralOn: "hci2")
        let spare = OwnCentral(on: stage)
        try spare.connect(to: "Spare", advertising: "180F")
        self.spare = spare
        return OwnCentral(on: stage)
    }

    override func tearDown() {
        XCTAssertNoThrow(try spare?.disconnect())
        spare = nil
    }

    private func bodies() throws -> PeripheralBodies { PeripheralBodies(on: try RadioStage()) }

    func testTwoSubscribersReceiveEachValueOnceInOrder() throws {
        try bodies().twoSubscribersReceiveEachValueOnceInOrder(with: try second())
    }

    func testUpdatesForOneCentralKeepTheirPlace() throws {
        // Earlier versions send each value to all subscribers.
        guard try !RadioLab.isOlder(than: "5.76") else { return try bodies().updatesForOneCentralAreRefused() }
        try bodies().updatesForOneCentralKeepTheirPlace(with: try second())
    }

    func testASubscriberStaysWhenAnotherOneLeaves() throws {
        try bodies().aSubscriberStaysWhenAnotherOneLeaves(try second())
    }
}
