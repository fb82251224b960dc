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

    private func send(_ events: Event..., file: StaticString = #filePath, line: UInt = #line) -> [Effect] {
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
        XCTAssertEqual(send(.linkUp(device, isResolved: false)), [])
        XCTAssertEqual(send(.wanted(first)), [])
        XCTAssertEqual(send(.resolved(true)), [.fence])
        XCTAssertEqual(send(.changed), [], "The burst after ServicesResolved is what the fence is for.")
        XCTAssertEqual(send(.fencePassed), [.read])
        XCTAssertEqual(send(.read(.whole)), [.tableHolds, .finish(first, .found)])
        XCTAssertTrue(machine.isReady)
        XCTAssertEqual(send(.wanted(second)), [.finish(second, .found)])
    }

    func testALinkThatIsResolvedAlreadyNeedsTheFenceAlone() {
        XCTAssertEqual(send(.linkUp(device, isResolved: true)), [.fence])
    }

    func testAPartialTableWaitsForQuiet() {
        XCTAssertEqual(send(.linkUp(device, isResolved: true), .wanted(first), .fencePassed), [.read])
        XCTAssertEqual(send(.read(.some)), settle)
        XCTAssertEqual(send(.changed), [.startTimer(.quiet, 0.25)])
        XCTAssertEqual(send(.fired(.quiet)), [.cancelTimer(.limit), .read])
        XCTAssertEqual(send(.read(.some)), [.tableHolds, .finish(first, .found)])
    }

    func testWhatNeverComesToRestIsReadAfterTheLimit() {
        _ = send(.linkUp(device, isResolved: true), .wanted(first), .fencePassed, .read(.some), .changed)
        XCTAssertEqual(send(.fired(.limit)), [.cancelTimer(.quiet), .read])
    }

    func testAnEmptyTableIsAFailureAfterQuiet() {
        _ = send(.linkUp(device, isResolved: true), .wanted(first), .fencePassed)
        XCTAssertEqual(send(.read(.nothing)), settle)
        _ = send(.fired(.quiet))
        XCTAssertEqual(send(.read(.nothing)), [.tableHolds, .finish(first, .foundNothing)])
        XCTAssertFalse(machine.isReady)
        XCTAssertEqual(send(.wanted(second)), settle, "Another request reads the table again.")
    }

    func testServicesThatComeLaterAreTakenIn() {
        _ = send(.linkUp(device, isResolved: true), .fencePassed, .read(.whole))
        XCTAssertEqual(send(.changed), settle)
        XCTAssertEqual(send(.wanted(first)), [])
        _ = send(.fired(.quiet))
        XCTAssertEqual(send(.read(.whole)), [.tableHolds, .finish(first, .found)])
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
                send(.linkLost), timers + [.finish(first, .linkLost), .finish(second, .linkLost)], "\(events)")
            XCTAssertFalse(machine.hasLink)
        }
    }

    func testLateNewsOfALostLinkSaysNothing() {
        _ = send(.linkUp(device, isResolved: true), .fencePassed, .linkLost)
        for event in [Event.fencePassed, .read(.whole), .changed, .fired(.quiet), .resolved(true), .linkLost] {
            XCTAssertEqual(play(event), [], "\(event)")
        }
        XCTAssertEqual(send(.wanted(first)), [.finish(first, .linkLost)])
    }

    func testAnAbandonedRequestHasNoResult() {
        _ = send(.linkUp(device, isResolved: true), .wanted(first), .wanted(second), .abandoned(first), .fencePassed)
        XCTAssertEqual(send(.read(.whole)), [.tableHolds, .finish(second, .found)])
    }

    func testABrokenWordOfBlueZVoidsTheTable() {
        _ = send(.linkUp(device, isResolved: true), .fencePassed, .read(.whole))
        XCTAssertEqual(send(.resolved(false)), [.tableIsVoid])
        XCTAssertEqual(send(.wanted(first)), [])
        XCTAssertEqual(send(.resolved(true)), [.fence])
    }
}
