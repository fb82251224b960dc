import BlueCapBlueZ
import BlueCapDBus
import XCTest

@testable import BlueCapKit

/// A `PeripheralManagerState` that returns the orders of each event, without those of the manager's own state.
struct RecordedPeripheralState {
    typealias Number = PeripheralManagerState.Number
    typealias Order = PeripheralManagerState.Order

    static let busFailure = BusError(name: "org.bluez.Error.Failed", message: "No")
    static let refusal = BlueZError(name: "org.bluez.Error.Failed", message: "No")
    static let noReply = BlueZError(name: "org.freedesktop.DBus.Error.NoReply", message: "No")

    private(set) var state = PeripheralManagerState()

    private mutating func orders(_ event: (inout PeripheralManagerState, inout [Order]) -> Void) -> [Order] {
        var orders: [Order] = []
        event(&state, &orders)
        return orders.filter { order in
            switch order {
            case .announce, .startTimer(.adapterGrace, _), .cancelTimer(.adapterGrace): false
            default: true
            }
        }
    }

    mutating func managerStateChanged(_ new: ManagerState) -> [Order] {
        let events: [ManagerStateMachine.Event] =
            switch new {
            case .poweredOn: [.reached(.ready), .adapterPower(true)]
            case .poweredOff: [.reached(.ready), .adapterPower(false)]
            case .resetting: [.reached(.loading)]
            case .unsupported: [.reached(.noDaemon)]
            case .unauthorized: [.reached(.refused(DBusError(name: "org.freedesktop.DBus.Error.Failed", message: "")))]
            case .unknown: []
            }
        defer { XCTAssertEqual(state.managerState, new) }
        return orders { state, orders in
            for event in events { state.event(event, into: &orders) }
        }
    }

    mutating func add(
        _ number: Number, _ kind: PeripheralManagerState.Kind, timeout: TimeInterval = .infinity
    ) -> [Order] {
        orders { $0.add(number, kind, timeout: timeout, into: &$1) }
    }

    mutating func remove(_ number: Number) -> [Order] { orders { $0.remove(number, into: &$1) } }

    mutating func endAll() -> [Order] { orders { $0.endAll(into: &$1) } }

    mutating func limitsKnown(
        _ number: Number, refusal: PeripheralManagerError?, capacity: Int? = nil
    ) -> [Order] {
        orders { $0.limitsKnown(number, refusal: refusal, capacity: capacity, into: &$1) }
    }

    mutating func stateChanged(_ number: Number, _ new: RegistrationState) -> [Order] {
        orders { $0.registrationChanged(number, new, into: &$1) }
    }

    mutating func placeChanged() -> [Order] { orders { $0.placeChanged(into: &$1) } }

    mutating func timerFired(_ number: Number) -> [Order] { orders { $0.fired(.request(number), into: &$1) } }
}

/// What a manager decides about its services.
final class ServiceRequestTests: XCTestCase {
    private typealias Number = PeripheralManagerState.Number

    private var registry = RecordedPeripheralState()
    private let a = Number(rawValue: 1)
    private let b = Number(rawValue: 2)
    private let busFailure = RecordedPeripheralState.busFailure
    private let refusal = RecordedPeripheralState.refusal
    private var added: [Number] { registry.state.services.filter { registry.state.isSettled($0) } }

    private func powerOn() { XCTAssertEqual(registry.managerStateChanged(.poweredOn), []) }

    private func added(_ number: Number) {
        _ = registry.add(number, .service)
        _ = registry.stateChanged(number, .registered)
    }

    func testAServiceIsRegisteredAtOnceWhileTheManagerIsOn() {
        powerOn()
        XCTAssertEqual(registry.add(a, .service, timeout: 10), [.startTimer(.request(a), 10), .register(a)])
        XCTAssertEqual(added, [])
        XCTAssertEqual(registry.stateChanged(a, .registered), [.cancelTimer(.request(a)), .settle(a, nil)])
        XCTAssertEqual(added, [a])
    }

    func testAServiceWaitsForPower() {
        XCTAssertEqual(registry.add(a, .service, timeout: 10), [.startTimer(.request(a), 10)])
        XCTAssertEqual(registry.managerStateChanged(.poweredOff), [])
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [.register(a)])
    }

    func testWithoutATimeoutThereIsNoTimer() {
        XCTAssertEqual(registry.add(a, .service), [])
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [.register(a)])
    }

    func testAServiceThatHasWaitedForLongFailsWithTheState() {
        _ = registry.add(a, .service)
        _ = registry.managerStateChanged(.unsupported)
        XCTAssertEqual(registry.timerFired(a), [.drop(a), .settle(a, .notPoweredOn(.unsupported))])
        XCTAssertFalse(registry.state.services.contains(a))
        XCTAssertEqual(registry.timerFired(a), [])
    }

    func testALateTimerDoesNothing() {
        _ = registry.add(a, .service)
        powerOnWaiting()
        _ = registry.stateChanged(a, .registered)
        XCTAssertEqual(registry.timerFired(a), [])
        _ = registry.managerStateChanged(.poweredOff)
        XCTAssertEqual(registry.timerFired(a), [], "What was added stays.")
        XCTAssertEqual(added, [a])
    }

    private func powerOnWaiting() { _ = registry.managerStateChanged(.poweredOn) }

    func testThereIsOneTimeoutForPowerAndRegistration() {
        powerOn()
        _ = registry.add(a, .service, timeout: 10)
        XCTAssertEqual(registry.managerStateChanged(.resetting), [])
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [])
        _ = registry.managerStateChanged(.resetting)
        XCTAssertEqual(
            registry.timerFired(a), [.unregister(a), .drop(a), .settle(a, .notPoweredOn(.resetting))])
        XCTAssertEqual(registry.stateChanged(a, .registered), [], "Too late.")
    }

    func testATimeoutSaysWhatKeptBlueZ() {
        powerOn()
        let delays: [(RegistrationState, PeripheralManagerError)] = [
            (.registering, .serviceTimeout), (.waiting(.support), .servicesNotSupported),
            (.retrying(refusal), .serviceRefused(busFailure)),
        ]
        for (delay, failure) in delays {
            _ = registry.add(a, .service, timeout: 1)
            XCTAssertEqual(registry.stateChanged(a, .waiting(.support)), [])
            XCTAssertEqual(registry.stateChanged(a, delay), [])
            XCTAssertEqual(registry.timerFired(a), [.unregister(a), .drop(a), .settle(a, failure)])
        }
    }

    func testARefusalTakesOutThatServiceAlone() {
        powerOn()
        added(a)
        _ = registry.add(b, .service)
        XCTAssertEqual(
            registry.stateChanged(b, .refused(refusal)),
            [.cancelTimer(.request(b)), .unregister(b), .drop(b), .settle(b, .serviceRefused(busFailure))])
        XCTAssertEqual(added, [a])
    }

    func testTheOrderIsThatOfTheRequests() {
        powerOn()
        _ = registry.add(a, .service)
        _ = registry.add(b, .service)
        _ = registry.stateChanged(b, .registered)
        _ = registry.stateChanged(a, .registered)
        XCTAssertEqual(added, [a, b])
    }

    func testAServiceIsAddedOnce() {
        powerOn()
        _ = registry.add(a, .service)
        XCTAssertEqual(registry.add(a, .service), [])
    }

    func testWhatIsRemovedIsUnregistered() {
        powerOn()
        added(a)
        XCTAssertEqual(registry.remove(a), [.unregister(a), .drop(a)])
        XCTAssertEqual(registry.remove(a), [])
    }

    func testARemovalSettlesWhoWaits() {
        _ = registry.add(a, .service)
        XCTAssertEqual(registry.remove(a), [.cancelTimer(.request(a)), .drop(a), .settle(a, .serviceRemoved)])
        powerOn()
        _ = registry.add(b, .service)
        XCTAssertEqual(
            registry.endAll(), [.cancelTimer(.request(b)), .unregister(b), .drop(b), .settle(b, .managerEnded)])
        XCTAssertEqual(registry.stateChanged(b, .registered), [])
    }

    func testServicesStayWhilePowerIsOff() {
        powerOn()
        added(a)
        XCTAssertEqual(registry.managerStateChanged(.poweredOff), [])
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [])
        XCTAssertEqual(added, [a])
    }

    func testAnotherAdapterGetsWhatTheFormerOneHad() {
        powerOn()
        added(a)
        _ = registry.add(b, .service)
        XCTAssertEqual(registry.placeChanged(), [.register(a), .register(b)])
        XCTAssertEqual(
            registry.stateChanged(a, .refused(refusal)), [],
            "It was added; its registration is retried without a request.")
        XCTAssertEqual(added, [a])
    }
}

/// What a manager decides about its advertisements.
final class AdvertisementRequestTests: XCTestCase {
    private typealias Number = PeripheralManagerState.Number

    private var registry = RecordedPeripheralState()
    private let a = Number(rawValue: 1)
    private let b = Number(rawValue: 2)
    private let busFailure = RecordedPeripheralState.busFailure
    private let refusal = RecordedPeripheralState.refusal
    private var isAdvertising: Bool { !registry.state.advertisements.isEmpty }

    private func powerOn() { _ = registry.managerStateChanged(.poweredOn) }

    private func startAdvertising(_ number: Number, isMain: Bool = false) {
        _ = registry.add(number, .advertisement(isMain: isMain))
        _ = registry.limitsKnown(number, refusal: nil)
        _ = registry.stateChanged(number, .registered)
        XCTAssertEqual(registry.state.stage(of: number), .registered)
    }

    func testTheAdapterIsAskedAndThenAdvertises() {
        powerOn()
        XCTAssertEqual(
            registry.add(a, .advertisement(isMain: true), timeout: 10), [.startTimer(.request(a), 10), .askLimits(a)])
        XCTAssertTrue(isAdvertising)
        XCTAssertTrue(registry.state.hasMainAdvertisement)
        XCTAssertEqual(registry.limitsKnown(a, refusal: nil), [.register(a)])
        XCTAssertEqual(registry.stateChanged(a, .registering), [])
        XCTAssertEqual(registry.stateChanged(a, .registered), [.cancelTimer(.request(a)), .settle(a, nil)])
    }

    func testWithoutPowerItWaitsAndThenFails() {
        XCTAssertEqual(registry.add(a, .advertisement(isMain: true), timeout: 10), [.startTimer(.request(a), 10)])
        _ = registry.managerStateChanged(.poweredOff)
        XCTAssertEqual(
            registry.timerFired(a), [.settle(a, .notPoweredOn(.poweredOff)), .ended(a, .notStarted)])
        XCTAssertFalse(isAdvertising)
    }

    func testItBeginsWhenThePowerComes() {
        _ = registry.add(a, .advertisement(isMain: true))
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [.askLimits(a)])
    }

    func testPowerThatGoesInTheMidstIsWaitedFor() {
        powerOn()
        _ = registry.add(a, .advertisement(isMain: true), timeout: 10)
        XCTAssertEqual(registry.managerStateChanged(.resetting), [])
        XCTAssertEqual(registry.limitsKnown(a, refusal: nil), [], "Asked before the daemon died.")
        XCTAssertEqual(registry.managerStateChanged(.poweredOn), [.askLimits(a)])
        _ = registry.limitsKnown(a, refusal: nil)
        XCTAssertEqual(registry.managerStateChanged(.resetting), [])
        XCTAssertEqual(
            registry.timerFired(a), [.settle(a, .notPoweredOn(.resetting)), .ended(a, .notStarted), .unregister(a)])
    }

    func testWhatTheAdapterCannotDoIsNotStarted() {
        powerOn()
        _ = registry.add(a, .advertisement(isMain: true))
        XCTAssertEqual(
            registry.limitsKnown(a, refusal: .tooManyAdvertisements(3)),
            [.cancelTimer(.request(a)), .settle(a, .tooManyAdvertisements(3)), .ended(a, .notStarted)])
        XCTAssertFalse(isAdvertising)
    }

    func testARefusalFailsTheStart() {
        powerOn()
        _ = registry.add(a, .advertisement(isMain: true))
        _ = registry.limitsKnown(a, refusal: nil)
        XCTAssertEqual(
            registry.stateChanged(a, .refused(refusal)),
            [
                .cancelTimer(.request(a)), .settle(a, .advertisementRefused(busFailure)),
                .ended(a, .refused(busFailure)), .unregister(a),
            ])
        XCTAssertFalse(isAdvertising)
    }

    func testAFullAdapterIsTheSameErrorAsBeforeTheRegistration() {
        let full = BlueZError(name: "org.bluez.Error.NotPermitted", message: "Maximum advertisements reached")
        powerOn()
        for capacity in [5, nil] {
            _ = registry.add(a, .advertisement(isMain: true))
            XCTAssertEqual(registry.limitsKnown(a, refusal: nil, capacity: capacity), [.register(a)])
            XCTAssertTrue(
                registry.stateChanged(a, .refused(full)).contains(.settle(a, .tooManyAdvertisements(capacity ?? 0))))
        }
    }

    func testAnAdapterWithoutAdvertisingIsGivenTime() {
        powerOn()
        _ = registry.add(a, .advertisement(isMain: true))
        _ = registry.limitsKnown(a, refusal: nil)
        XCTAssertEqual(registry.stateChanged(a, .waiting(.support)), [])
        XCTAssertEqual(
            registry.timerFired(a), [.settle(a, .advertisingNotSupported), .ended(a, .notStarted), .unregister(a)])
    }

    func testATimeoutSaysWhatKeptBlueZ() {
        powerOn()
        let events: [(RegistrationState, PeripheralManagerError)] = [
            (.registering, .startAdvertisingTimeout), (.retrying(refusal), .advertisementRefused(busFailure)),
            (.waiting(.support), .advertisingNotSupported),
        ]
        for (event, failure) in events {
            _ = registry.add(a, .advertisement(isMain: true), timeout: 1)
            _ = registry.limitsKnown(a, refusal: nil)
            _ = registry.stateChanged(a, event)
            XCTAssertEqual(registry.timerFired(a), [.settle(a, failure), .ended(a, .notStarted), .unregister(a)])
        }
    }

    func testAnAdapterThatDoesNotSayWhatItCanDoIsNotWaitedFor() {
        powerOn()
        _ = registry.add(a, .advertisement(isMain: true), timeout: 1)
        XCTAssertEqual(registry.timerFired(a), [.settle(a, .startAdvertisingTimeout), .ended(a, .notStarted)])
        XCTAssertEqual(registry.limitsKnown(a, refusal: nil), [])
    }

    func testARegistrationWithoutAnAnswerFailsTheStart() {
        powerOn()
        _ = registry.add(a, .advertisement(isMain: true))
        _ = registry.limitsKnown(a, refusal: nil)
        XCTAssertEqual(
            registry.stateChanged(a, .refused(RecordedPeripheralState.noReply)),
            [
                .cancelTimer(.request(a)), .settle(a, .startAdvertisingTimeout),
                .ended(a, .refused(BusError(RecordedPeripheralState.noReply))), .unregister(a),
            ])
    }

    func testItComesBackByItself() {
        powerOn()
        startAdvertising(a)
        XCTAssertEqual(registry.stateChanged(a, .waiting(.adapter)), [])
        XCTAssertEqual(registry.state.stage(of: a), .returning)
        XCTAssertTrue(isAdvertising)
        XCTAssertEqual(registry.stateChanged(a, .registered), [])
        XCTAssertEqual(registry.state.stage(of: a), .registered)
    }

    func testARefusalLaterEndsIt() {
        powerOn()
        startAdvertising(a)
        XCTAssertEqual(registry.stateChanged(a, .refused(refusal)), [.ended(a, .refused(busFailure)), .unregister(a)])
    }

    func testItsTimeOutEndsIt() {
        powerOn()
        startAdvertising(a)
        XCTAssertEqual(registry.stateChanged(a, .timedOut), [.ended(a, .timedOut), .unregister(a)])
        XCTAssertFalse(isAdvertising)
    }

    func testARemovalSettlesAStartThatIsUnderWay() {
        powerOn()
        _ = registry.add(a, .advertisement(isMain: true))
        XCTAssertEqual(
            registry.remove(a), [.cancelTimer(.request(a)), .settle(a, .advertisingStopped), .ended(a, .stopped)])
        _ = registry.add(b, .advertisement(isMain: true))
        _ = registry.limitsKnown(b, refusal: nil)
        XCTAssertEqual(
            registry.remove(b),
            [.cancelTimer(.request(b)), .settle(b, .advertisingStopped), .ended(b, .stopped), .unregister(b)])
    }

    func testTheManagersEndSettlesEverybody() {
        powerOn()
        startAdvertising(a)
        _ = registry.add(b, .advertisement(isMain: true))
        XCTAssertEqual(
            registry.endAll(),
            [
                .ended(a, .managerEnded), .unregister(a), .cancelTimer(.request(b)), .settle(b, .managerEnded),
                .ended(b, .managerEnded),
            ])
    }

    func testAnotherAdapterAdvertisesWhatTheFormerOneDid() {
        powerOn()
        startAdvertising(a)
        _ = registry.add(b, .advertisement(isMain: false))
        XCTAssertEqual(registry.placeChanged(), [.register(a)])
        XCTAssertEqual(registry.stateChanged(a, .registered), [], "It was reported before.")
    }
}
