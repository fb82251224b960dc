import XCTest

@testable import BlueCapKit

final class ServiceDiscoveryMachineTests: XCTestCase {
    private typealias Effect = ServiceDiscoveryMachine.Effect
    private typealias Event = ServiceDiscoveryMachine.Event

    private var machine = ServiceDiscoveryMachine()
    private let first = OperationID(rawValue: 1)
    private let second = OperationID(rawValue: 2)

    private let settle: [Effect] = [.startTimer(.quiet, 0.25), .startTimer(.limit, 5)]

    private func tell(_ events: Event..., file: StaticString = #filePath, line: UInt = #line) -> [Effect] {
        events.map { machine.event($0) }.last ?? []
    }

    func testAWholeTableIsReadyAtOnce() {
        XCTAssertEqual(tell(.linkUp(isResolved: false)), [])
        XCTAssertEqual(tell(.wanted(first)), [])
        XCTAssertEqual(tell(.resolved(true)), [.fence])
        XCTAssertEqual(tell(.cameOrWent), [], "The burst after ServicesResolved is what the fence is for.")
        XCTAssertEqual(tell(.fencePassed), [.read])
        XCTAssertEqual(tell(.read(.whole)), [.tableHolds, .finish(first, .found)])
        XCTAssertTrue(machine.isReady)
        XCTAssertEqual(tell(.wanted(second)), [.finish(second, .found)])
    }

    func testALinkThatIsResolvedAlreadyNeedsTheFenceAlone() {
        XCTAssertEqual(tell(.linkUp(isResolved: true)), [.fence])
    }

    func testAPartialTableWaitsForQuiet() {
        XCTAssertEqual(tell(.linkUp(isResolved: true), .wanted(first), .fencePassed), [.read])
        XCTAssertEqual(tell(.read(.some)), settle)
        XCTAssertEqual(tell(.cameOrWent), [.startTimer(.quiet, 0.25)])
        XCTAssertEqual(tell(.fired(.quiet)), [.cancelTimer(.limit), .read])
        XCTAssertEqual(tell(.read(.some)), [.tableHolds, .finish(first, .found)])
    }

    func testWhatNeverComesToRestIsReadAfterTheLimit() {
        _ = tell(.linkUp(isResolved: true), .wanted(first), .fencePassed, .read(.some), .cameOrWent)
        XCTAssertEqual(tell(.fired(.limit)), [.cancelTimer(.quiet), .read])
    }

    func testAnEmptyTableIsAFailureAfterQuiet() {
        _ = tell(.linkUp(isResolved: true), .wanted(first), .fencePassed)
        XCTAssertEqual(tell(.read(.nothing)), settle)
        _ = tell(.fired(.quiet))
        XCTAssertEqual(tell(.read(.nothing)), [.tableHolds, .finish(first, .foundNothing)])
        XCTAssertFalse(machine.isReady)
        XCTAssertEqual(tell(.wanted(second)), settle, "Whoever asks again has us look again.")
    }

    func testServicesThatComeLaterAreTakenIn() {
        _ = tell(.linkUp(isResolved: true), .fencePassed, .read(.whole))
        XCTAssertEqual(tell(.cameOrWent), settle)
        XCTAssertEqual(tell(.wanted(first)), [])
        _ = tell(.fired(.quiet))
        XCTAssertEqual(tell(.read(.whole)), [.tableHolds, .finish(first, .found)])
    }

    func testTheLostLinkFailsEverybodyInEachState() {
        let ways: [(events: [Event], timersRun: Bool)] = [
            ([.linkUp(isResolved: false)], false),
            ([.linkUp(isResolved: true)], false),
            ([.linkUp(isResolved: true), .fencePassed], false),
            ([.linkUp(isResolved: true), .fencePassed, .read(.some)], true),
        ]
        for (events, timersRun) in ways {
            machine = ServiceDiscoveryMachine()
            for event in events + [.wanted(first), .wanted(second)] { _ = machine.event(event) }
            let timers: [Effect] = timersRun ? [.cancelTimer(.quiet), .cancelTimer(.limit)] : []
            XCTAssertEqual(
                tell(.linkLost), timers + [.finish(first, .linkLost), .finish(second, .linkLost)], "\(events)")
            XCTAssertFalse(machine.hasLink)
        }
    }

    func testLateNewsOfALostLinkSaysNothing() {
        _ = tell(.linkUp(isResolved: true), .fencePassed, .linkLost)
        for event in [Event.fencePassed, .read(.whole), .cameOrWent, .fired(.quiet), .resolved(true), .linkLost] {
            XCTAssertEqual(machine.event(event), [], "\(event)")
        }
        XCTAssertEqual(tell(.wanted(first)), [.finish(first, .linkLost)])
    }

    func testWhoWaitsNoLongerIsNotTold() {
        _ = tell(.linkUp(isResolved: true), .wanted(first), .wanted(second), .abandoned(first), .fencePassed)
        XCTAssertEqual(tell(.read(.whole)), [.tableHolds, .finish(second, .found)])
    }

    func testABrokenWordOfBlueZVoidsTheTable() {
        _ = tell(.linkUp(isResolved: true), .fencePassed, .read(.whole))
        XCTAssertEqual(tell(.resolved(false)), [.tableIsVoid])
        XCTAssertEqual(tell(.wanted(first)), [])
        XCTAssertEqual(tell(.resolved(true)), [.fence])
    }
}
