import BlueCapBlueZ
import BlueCapDBus
import TestSupport
import XCTest

@testable import BlueCapKit

/// Plays tables with a `PeripheralManagerState`, without the orders of the manager's own state.
class PeripheralRequestCase: XCTestCase {
    fileprivate typealias State = PeripheralManagerState

    private static let refusal = BlueZError(name: "org.bluez.Error.Failed", message: "No")
    private static let noReply = BlueZError(name: "org.freedesktop.DBus.Error.NoReply", message: "No")
    private static let registrations: [String: RegistrationState] = [
        "registering": .registering, "registered": .registered, "timesOut": .timedOut, "refused": .refused(refusal),
        "retrying": .retrying(refusal), "unanswered": .refused(noReply), "unsupported": .waiting(.support),
        "away": .waiting(.adapter),
        "full": .refused(BlueZError(name: "org.bluez.Error.NotPermitted", message: "Maximum advertisements reached")),
    ]
    private static let errors: [String: PeripheralManagerError] = [
        "serviceTimeout": .serviceTimeout, "servicesNotSupported": .servicesNotSupported,
        "serviceRefused": .serviceRefused(BusError(refusal)), "serviceRemoved": .serviceRemoved,
        "startTimeout": .startAdvertisingTimeout, "notSupported": .advertisingNotSupported,
        "advertisementRefused": .advertisementRefused(BusError(refusal)), "stopped": .advertisingStopped,
        "tooMany(0)": .tooManyAdvertisements(0), "tooMany(3)": .tooManyAdvertisements(3),
        "tooMany(5)": .tooManyAdvertisements(5), "managerEnded": .managerEnded,
        "unsupported": .notPoweredOn(.unsupported), "poweredOff": .notPoweredOn(.poweredOff),
        "resetting": .notPoweredOn(.resetting),
    ]

    private static func words(_ order: State.Order) -> String? {
        switch order {
        case .announce, .startTimer(.adapterGrace, _), .cancelTimer(.adapterGrace): nil
        case .startTimer(.request(let number), let seconds): "limit \(number.rawValue) \(Int(seconds))"
        case .cancelTimer(.request(let number)): "cancel \(number.rawValue)"
        case .askLimits(let number): "askLimits \(number.rawValue)"
        case .register(let number): "register \(number.rawValue)"
        case .unregister(let number): "unregister \(number.rawValue)"
        case .drop(let number): "drop \(number.rawValue)"
        case .settle(let number, nil): "done \(number.rawValue)"
        case .settle(let number, let error?):
            "fail \(number.rawValue) " + (errors.first { $0.value == error }?.key ?? "\(error)")
        case .ended(let number, .refused(let error)):
            "ended \(number.rawValue) " + (registrations.first { $0.value.error == error }?.key ?? "\(error)")
        case .ended(let number, let end): "ended \(number.rawValue) \(end)"
        }
    }

    /// Executes an event of a table. A number is that of the request.
    private static func send(_ event: [String], to state: inout State) throws -> String {
        let number = State.Number(rawValue: event.count > 1 ? UInt64(event[1]) ?? 0 : 0)
        var orders: [State.Order] = []
        func become(_ new: ManagerState, _ events: ManagerStateMachine.Event...) {
            for event in events { state.event(event, into: &orders) }
            XCTAssertEqual(state.managerState, new)
        }
        switch event[0] {
        case "added":
            let added = state.services.filter { state.isSettled($0) }.map { "\($0.rawValue)" }
            return added.isEmpty ? "none" : added.joined(separator: " ")
        case "services": return state.services.isEmpty ? "none" : "\(state.services.map(\.rawValue))"
        case "isAdvertising": return "\(!state.advertisements.isEmpty)"
        case "hasMain": return "\(state.hasMainAdvertisement)"
        case "stage": return state.stage(of: number).map { "\($0)" } ?? "none"
        case "on": become(.poweredOn, .reached(.ready), .adapterPower(true))
        case "off": become(.poweredOff, .reached(.ready), .adapterPower(false))
        case "reset": become(.resetting, .reached(.loading))
        case "noDaemon": become(.unsupported, .reached(.noDaemon))
        case "add", "advertise":
            state.add(
                number, event[0] == "add" ? .service : .advertisement(isMain: event.contains("main")),
                timeout: event.count > 2 ? TimeInterval(event[2]) ?? .infinity : .infinity, into: &orders)
        case "limits":
            state.limitsKnown(
                number, refusal: event.count > 2 ? errors[event[2]] : nil, capacity: event.last == "of5" ? 5 : nil,
                into: &orders)
        case "remove": state.remove(number, into: &orders)
        case "endAll": state.endAll(into: &orders)
        case "anotherPlace": state.placeChanged(into: &orders)
        case "timedOut": state.fired(.request(number), into: &orders)
        default:
            guard let new = registrations[event[0]] else { throw UnknownEvent(event) }
            state.registrationChanged(number, new, into: &orders)
        }
        let words = orders.compactMap(words)
        return words.isEmpty ? "none" : words.joined(separator: ", ")
    }

    fileprivate func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            var state = State()
            return { try Self.send($0, to: &state) }
        }
    }
}

extension RegistrationState {
    fileprivate var error: BusError? { if case .refused(let error) = self { BusError(error) } else { nil } }
}

/// What a manager decides about its services.
final class ServiceRequestTests: PeripheralRequestCase {
    func testServices() {
        play(
            """
            A service is registered at once while the manager is on:
            on; add 1 10 → limit 1 10, register 1; added → none; registered 1 → cancel 1, done 1; added → 1
            A service waits for power:
            add 1 10 → limit 1 10; off → none; on → register 1
            Without a time limit there is no timer:
            add 1 → none; on → register 1
            A service that has waited too long fails with the state:
            add 1; noDaemon; timedOut 1 → drop 1, fail 1 unsupported; services → none; timedOut 1 → none
            A late timer does nothing, and what was added stays:
            add 1; on; registered 1; timedOut 1 → none; off; timedOut 1 → none; added → 1
            There is one time limit for power and registration, and a later reply does nothing:
            on; add 1 10; reset → none; on → none; reset; timedOut 1 → unregister 1, drop 1, fail 1 resetting
            registered 1 → none
            A time limit names what has delayed BlueZ:
            on; add 1 1; unsupported 1 → none; registering 1 → none
            timedOut 1 → unregister 1, drop 1, fail 1 serviceTimeout
            add 1 1; unsupported 1 → none; timedOut 1 → unregister 1, drop 1, fail 1 servicesNotSupported
            add 1 1; unsupported 1; retrying 1 → none; timedOut 1 → unregister 1, drop 1, fail 1 serviceRefused
            A refusal removes that service alone:
            on; add 1; registered 1; add 2; refused 2 → cancel 2, unregister 2, drop 2, fail 2 serviceRefused; added → 1
            The order is that of the requests:
            on; add 1; add 2; registered 2; registered 1; added → 1 2
            A service is added once:
            on; add 1; add 1 → none
            What is removed is unregistered:
            on; add 1; registered 1; remove 1 → unregister 1, drop 1; remove 1 → none
            A removal settles what waits:
            add 1; remove 1 → cancel 1, drop 1, fail 1 serviceRemoved; on; add 2
            endAll → cancel 2, unregister 2, drop 2, fail 2 managerEnded; registered 2 → none
            Services stay while the power is off:
            on; add 1; registered 1; off → none; on → none; added → 1
            Another adapter gets what the former one had, and a refusal there is retried without a request:
            on; add 1; registered 1; add 2; anotherPlace → register 1, register 2; refused 1 → none; added → 1
            """)
    }
}

/// What a manager decides about its advertisements.
final class AdvertisementRequestTests: PeripheralRequestCase {
    func testStarts() {
        play(
            """
            The adapter is asked and then advertises:
            on; advertise 1 10 main → limit 1 10, askLimits 1; isAdvertising → true; hasMain → true
            limits 1 → register 1
            registering 1 → none; registered 1 → cancel 1, done 1
            Without power it waits and then fails:
            advertise 1 10 main → limit 1 10; off; timedOut 1 → fail 1 poweredOff, ended 1 notStarted
            isAdvertising → false
            It begins when the power comes:
            advertise 1 main; on → askLimits 1
            A loss of power meanwhile is waited for, and an earlier reply does nothing:
            on; advertise 1 10 main; reset → none; limits 1 → none; on → askLimits 1; limits 1; reset → none
            timedOut 1 → fail 1 resetting, ended 1 notStarted, unregister 1
            What the adapter cannot do is not started:
            on; advertise 1 main; limits 1 tooMany(3) → cancel 1, fail 1 tooMany(3), ended 1 notStarted
            isAdvertising → false
            A refusal fails the start:
            on; advertise 1 main; limits 1
            refused 1 → cancel 1, fail 1 advertisementRefused, ended 1 refused, unregister 1
            isAdvertising → false
            A full adapter is the same error as before the registration:
            on; advertise 1 main; limits 1 of5 → register 1
            full 1 → cancel 1, fail 1 tooMany(5), ended 1 full, unregister 1
            Also if its capacity is not known:
            on; advertise 1 main; limits 1 → register 1
            full 1 → cancel 1, fail 1 tooMany(0), ended 1 full, unregister 1
            An adapter without advertising has until the time limit:
            on; advertise 1 main; limits 1; unsupported 1 → none
            timedOut 1 → fail 1 notSupported, ended 1 notStarted, unregister 1
            A time limit names what has delayed BlueZ:
            on; advertise 1 1 main; limits 1; registering 1
            timedOut 1 → fail 1 startTimeout, ended 1 notStarted, unregister 1
            advertise 1 1 main; limits 1; retrying 1
            timedOut 1 → fail 1 advertisementRefused, ended 1 notStarted, unregister 1
            An adapter that does not reply what it can do is not waited for:
            on; advertise 1 1 main; timedOut 1 → fail 1 startTimeout, ended 1 notStarted; limits 1 → none
            A registration without a reply fails the start:
            on; advertise 1 main; limits 1
            unanswered 1 → cancel 1, fail 1 startTimeout, ended 1 unanswered, unregister 1
            """)
    }

    func testEnds() {
        play(
            """
            It returns by itself:
            on; advertise 1; limits 1; registered 1; stage 1 → registered; away 1 → none; stage 1 → returning
            isAdvertising → true; registered 1 → none; stage 1 → registered
            A later refusal ends it:
            on; advertise 1; limits 1; registered 1; refused 1 → ended 1 refused, unregister 1
            Its time-out ends it:
            on; advertise 1; limits 1; registered 1; timesOut 1 → ended 1 timedOut, unregister 1; isAdvertising → false
            A removal settles a start that is under way:
            on; advertise 1 main; remove 1 → cancel 1, fail 1 stopped, ended 1 stopped; advertise 2 main; limits 2
            remove 2 → cancel 2, fail 2 stopped, ended 2 stopped, unregister 2
            The manager's end settles everything:
            on; advertise 1; limits 1; registered 1; advertise 2 main
            endAll → ended 1 managerEnded, unregister 1, cancel 2, fail 2 managerEnded, ended 2 managerEnded
            Another adapter advertises what the former one did, and that was reported before:
            on; advertise 1; limits 1; registered 1; advertise 2; anotherPlace → register 1; registered 1 → none
            """)
    }
}
