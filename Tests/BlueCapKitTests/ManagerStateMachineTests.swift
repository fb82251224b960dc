import BlueCapBlueZ
import BlueCapDBus
import TestSupport
import XCTest

@testable import BlueCapKit

final class ManagerStateMachineTests: XCTestCase {
    /// Executes an event of the table.
    private static func send(_ event: [String], to machine: inout ManagerStateMachine) throws -> String {
        let error = DBusError(name: "org.freedesktop.DBus.Error.Failed", message: "")
        let effects: [ManagerStateMachine.Effect]
        switch event[0] {
        case "state": return "\(machine.state)"
        case "connecting": effects = machine.event(.reached(.connecting))
        case "loading": effects = machine.event(.reached(.loading))
        case "ready": effects = machine.event(.reached(.ready))
        case "noBus": effects = machine.event(.reached(.noBus(error)))
        case "noDaemon": effects = machine.event(.reached(.noDaemon))
        case "refused": effects = machine.event(.reached(.refused(error)))
        case "on": effects = machine.event(.adapterPower(true))
        case "off": effects = machine.event(.adapterPower(false))
        case "noAdapter": effects = machine.event(.adapterPower(nil))
        case "graceEnded": effects = machine.event(.graceEnded)
        default: throw UnknownEvent(event)
        }
        let words = effects.map { if case .announce(let state) = $0 { "announce \(state)" } else { "\($0)" } }
        return words.isEmpty ? "none" : words.joined(separator: ", ")
    }

    func testStates() {
        play(
            """
            No reply has come yet:
            state → unknown; connecting; state → unknown; loading; state → unknown
            Without a bus it is unsupported, which another attempt does not hide:
            noBus; state → unsupported; connecting; state → unsupported
            Without a daemon it is unsupported:
            noDaemon; state → unsupported
            Without an adapter it is unsupported:
            ready; state → unsupported
            A refusal is unauthorized, which another attempt does not hide:
            loading; refused; state → unauthorized; connecting; state → unauthorized
            The power decides once BlueZ is ready:
            ready; state → unsupported; off; state → poweredOff; on; state → poweredOn; noAdapter; state → unsupported
            A daemon that ends is resetting until it returns:
            ready; state → unsupported; on; state → poweredOn; noDaemon; state → resetting; loading; state → resetting
            ready; state → resetting; on; state → poweredOn
            A bus that ends is resetting too:
            ready; on; noBus; connecting; state → resetting
            A daemon that is replaced without a gap is resetting:
            ready; on; loading; state → resetting
            A daemon that returns has time to find its adapter:
            ready; on; noDaemon; ready → startGrace; noAdapter → none; state → resetting
            off → cancelGrace, announce poweredOff
            After that time there is no adapter:
            ready; on; noDaemon; ready; graceEnded → announce unsupported
            A daemon that ends meanwhile ends that time:
            ready; on; noDaemon; ready; noDaemon → cancelGrace; state → resetting
            Each state is announced once:
            ready; on → announce poweredOn; on → none
            """
        ) {
            var machine = ManagerStateMachine()
            return { try Self.send($0, to: &machine) }
        }
    }
}
