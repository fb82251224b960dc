import XCTest

@testable import BlueCapKit
@testable import BlueCapBlueZ

final class ServiceDiscoveryMachineTests: XCTestCase {
    /// What an event gives, in the order in which it takes effect.
    private enum Effect: Equatable {
        case fence, read
        case startTimer(ServiceDiscoveryMachine.Timer, TimeInterval)
        case cancelTimer(ServiceDiscoveryMachine.Timer)
        case finish(ServiceDiscoveryMachine.Change)
    }

    private typealias Event = ServiceDiscoveryMachine.Event

    private var machine = ServiceDiscoveryMachine()

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
        if let change { effects.append(.finish(change)) }
        return effects
    }

    func testAWholeTableIsReadyAtOnce() {
        XCTAssertEqual(send(.linkUp(isResolved: false)), [])
        XCTAssertEqual(send(.wanted), [])
        XCTAssertEqual(send(.resolved(true)), [.fence])
        XCTAssertEqual(send(.changed), [], "The burst after ServicesResolved is what the fence is for.")
        XCTAssertEqual(send(.fencePassed), [.read])
        XCTAssertEqual(send(.read(.whole)), [.finish(.found)])
        XCTAssertTrue(machine.isReady)
        XCTAssertEqual(send(.wanted), [.finish(.found)])
    }

    func testALinkThatIsResolvedAlreadyNeedsTheFenceAlone() {
        XCTAssertEqual(send(.linkUp(isResolved: true)), [.fence])
    }

    func testAPartialTableWaitsForQuiet() {
        XCTAssertEqual(send(.linkUp(isResolved: true), .wanted, .fencePassed), [.read])
        XCTAssertEqual(send(.read(.some)), settle)
        XCTAssertEqual(send(.changed), [.startTimer(.quiet, 0.25)])
        XCTAssertEqual(send(.fired(.quiet)), [.cancelTimer(.limit), .read])
        XCTAssertEqual(send(.read(.some)), [.finish(.found)])
    }

    func testWhatNeverComesToRestIsReadAfterTheLimit() {
        _ = send(.linkUp(isResolved: true), .wanted, .fencePassed, .read(.some), .changed)
        XCTAssertEqual(send(.fired(.limit)), [.cancelTimer(.quiet), .read])
    }

    func testAnEmptyTableIsAFailureAfterQuiet() {
        _ = send(.linkUp(isResolved: true), .wanted, .fencePassed)
        XCTAssertEqual(send(.read(.nothing)), settle)
        _ = send(.fired(.quiet))
        XCTAssertEqual(send(.read(.nothing)), [.finish(.foundNothing)])
        XCTAssertFalse(machine.isReady)
        XCTAssertEqual(send(.wanted), settle, "Another request reads the table again.")
    }

    func testServicesThatComeLaterAreTakenIn() {
        _ = send(.linkUp(isResolved: true), .fencePassed, .read(.whole))
        XCTAssertEqual(send(.changed), settle)
        XCTAssertEqual(send(.wanted), [])
        _ = send(.fired(.quiet))
        XCTAssertEqual(send(.read(.whole)), [.finish(.found)])
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
            for event in events + [.wanted] { _ = play(event) }
            let timers: [Effect] = timersRun ? [.cancelTimer(.quiet), .cancelTimer(.limit)] : []
            XCTAssertEqual(
                send(.linkLost), timers + [.finish(.linkLost)], "\(events)")
            XCTAssertFalse(machine.hasLink)
        }
    }

    func testLateNewsOfALostLinkSaysNothing() {
        _ = send(.linkUp(isResolved: true), .fencePassed, .linkLost)
        for event in [Event.fencePassed, .read(.whole), .changed, .fired(.quiet), .resolved(true), .linkLost] {
            XCTAssertEqual(play(event), [], "\(event)")
        }
        XCTAssertEqual(send(.wanted), [.finish(.linkLost)])
    }

    func testABrokenWordOfBlueZVoidsTheTable() {
        _ = send(.linkUp(isResolved: true), .fencePassed, .read(.whole))
        XCTAssertEqual(send(.resolved(false)), [.finish(.isVoid)])
        XCTAssertEqual(send(.wanted), [])
        XCTAssertEqual(send(.resolved(true)), [.fence])
    }
}
