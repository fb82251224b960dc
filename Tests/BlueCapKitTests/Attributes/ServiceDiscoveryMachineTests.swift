import XCTest

@testable import BlueCapKit
@testable import BlueZ

final class ServiceDiscoveryMachineTests: XCTestCase {
    /// What an event gives, in the order in which it takes effect.
    private enum Effect: Equatable {
        case fence, read, tableHolds, tableIsVoid
        case startTimer(ServiceDiscoveryMachine.Timer, TimeInterval)
        case cancelTimer(ServiceDiscoveryMachine.Timer)
        case finish(OperationID, ServiceDiscoveryMachine.Change.Result)
    }

    private typealias Event = ServiceDiscoveryMachine.Event

    private var machine = ServiceDiscoveryMachine()
    private let device = ObjectKey(foreign: 1)
    private let first = OperationID(rawValue: 1)
    private let second = OperationID(rawValue: 2)

    private let settle: [Effect] = [.startTimer(.quiet, 0.25), .startTimer(.limit, 5)]

    private func tell(_ events: Event..., file: StaticString = #filePath, line: UInt = #line) -> [Effect] {
        events.map { play($0) }.last ?? []
    }

    private func play(_ event: Event) -> [Effect] {
        var orders = Orders()
        let change = machine.event(event, into: &orders)
        var effects = orders.pending.compactMap { order -> Effect? in
            switch order.action {
            case .fence: .fence
            case .readTable: .read
            case .startTimer(.discovery(let timer), let seconds): .startTimer(timer, seconds)
            case .cancelTimer(.discovery(let timer)): .cancelTimer(timer)
            default: nil
            }
        }
        XCTAssertEqual(effects.count, orders.count)
        switch change.table {
        case .isValid: effects.append(.tableHolds)
        case .isVoid: effects.append(.tableIsVoid)
        case nil: break
        }
        return effects + change.finished.map { .finish($0, change.result) }
    }

    func testAWholeTableIsReadyAtOnce() {
        XCTAssertEqual(tell(.linkUp(device, isResolved: false)), [])
        XCTAssertEqual(tell(.wanted(first)), [])
        XCTAssertEqual(tell(.resolved(true)), [.fence])
        XCTAssertEqual(tell(.changed), [], "The burst after ServicesResolved is what the fence is for.")
        XCTAssertEqual(tell(.fencePassed), [.read])
        XCTAssertEqual(tell(.read(.whole)), [.tableHolds, .finish(first, .found)])
        XCTAssertTrue(machine.isReady)
        XCTAssertEqual(tell(.wanted(second)), [.finish(second, .found)])
    }

    func testALinkThatIsResolvedAlreadyNeedsTheFenceAlone() {
        XCTAssertEqual(tell(.linkUp(device, isResolved: true)), [.fence])
    }

    func testAPartialTableWaitsForQuiet() {
        XCTAssertEqual(tell(.linkUp(device, isResolved: true), .wanted(first), .fencePassed), [.read])
        XCTAssertEqual(tell(.read(.some)), settle)
        XCTAssertEqual(tell(.changed), [.startTimer(.quiet, 0.25)])
        XCTAssertEqual(tell(.fired(.quiet)), [.cancelTimer(.limit), .read])
        XCTAssertEqual(tell(.read(.some)), [.tableHolds, .finish(first, .found)])
    }

    func testWhatNeverComesToRestIsReadAfterTheLimit() {
        _ = tell(.linkUp(device, isResolved: true), .wanted(first), .fencePassed, .read(.some), .changed)
        XCTAssertEqual(tell(.fired(.limit)), [.cancelTimer(.quiet), .read])
    }

    func testAnEmptyTableIsAFailureAfterQuiet() {
        _ = tell(.linkUp(device, isResolved: true), .wanted(first), .fencePassed)
        XCTAssertEqual(tell(.read(.nothing)), settle)
        _ = tell(.fired(.quiet))
        XCTAssertEqual(tell(.read(.nothing)), [.tableHolds, .finish(first, .foundNothing)])
        XCTAssertFalse(machine.isReady)
        XCTAssertEqual(tell(.wanted(second)), settle, "Another request reads the table again.")
    }

    func testServicesThatComeLaterAreTakenIn() {
        _ = tell(.linkUp(device, isResolved: true), .fencePassed, .read(.whole))
        XCTAssertEqual(tell(.changed), settle)
        XCTAssertEqual(tell(.wanted(first)), [])
        _ = tell(.fired(.quiet))
        XCTAssertEqual(tell(.read(.whole)), [.tableHolds, .finish(first, .found)])
    }

    func testTheLostLinkFailsEverybodyInEachState() {
        let ways: [(events: [Event], timersRun: Bool)] = [
            ([.linkUp(device, isResolved: false)], false),
            ([.linkUp(device, isResolved: true)], false),
            ([.linkUp(device, isResolved: true), .fencePassed], false),
            ([.linkUp(device, isResolved: true), .fencePassed, .read(.some)], true),
        ]
        for (events, timersRun) in ways {
            machine = ServiceDiscoveryMachine()
            for event in events + [.wanted(first), .wanted(second)] { _ = play(event) }
            let timers: [Effect] = timersRun ? [.cancelTimer(.quiet), .cancelTimer(.limit)] : []
            XCTAssertEqual(
                tell(.linkLost), timers + [.finish(first, .linkLost), .finish(second, .linkLost)], "\(events)")
            XCTAssertFalse(machine.hasLink)
        }
    }

    func testLateNewsOfALostLinkSaysNothing() {
        _ = tell(.linkUp(device, isResolved: true), .fencePassed, .linkLost)
        for event in [Event.fencePassed, .read(.whole), .changed, .fired(.quiet), .resolved(true), .linkLost] {
            XCTAssertEqual(play(event), [], "\(event)")
        }
        XCTAssertEqual(tell(.wanted(first)), [.finish(first, .linkLost)])
    }

    func testWhoWaitsNoLongerIsNotTold() {
        _ = tell(.linkUp(device, isResolved: true), .wanted(first), .wanted(second), .abandoned(first), .fencePassed)
        XCTAssertEqual(tell(.read(.whole)), [.tableHolds, .finish(second, .found)])
    }

    func testABrokenWordOfBlueZVoidsTheTable() {
        _ = tell(.linkUp(device, isResolved: true), .fencePassed, .read(.whole))
        XCTAssertEqual(tell(.resolved(false)), [.tableIsVoid])
        XCTAssertEqual(tell(.wanted(first)), [])
        XCTAssertEqual(tell(.resolved(true)), [.fence])
    }
}
