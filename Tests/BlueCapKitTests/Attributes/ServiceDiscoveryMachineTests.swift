import TestSupport
import XCTest

@testable import BlueCapKit
@testable import BlueCapBlueZ

final class ServiceDiscoveryMachineTests: XCTestCase {
    /// Executes an event of a table; returns the orders, and the change that callers receive.
    private static func send(_ event: [String], to machine: inout ServiceDiscoveryMachine) throws -> String {
        let sent: ServiceDiscoveryMachine.Event
        switch event[0] {
        case "isReady": return "\(machine.isReady)"
        case "hasLink": return "\(machine.hasLink)"
        case "linkUp": sent = .linkUp(isResolved: event.contains("resolved"))
        case "resolved": sent = .resolved(true)
        case "unresolved": sent = .resolved(false)
        case "wanted": sent = .wanted
        case "fencePassed": sent = .fencePassed
        case "changed": sent = .changed
        case "quiet": sent = .fired(.quiet)
        case "limit": sent = .fired(.limit)
        case "readWhole": sent = .read(.whole)
        case "readSome": sent = .read(.some)
        case "readNothing": sent = .read(.nothing)
        case "linkLost": sent = .linkLost
        default: throw UnknownEvent(event)
        }
        var orders = Orders()
        let change = machine.event(sent, into: &orders)
        let words = orders.pending.map { order in
            switch order.action {
            case .fence: "fence"
            case .readTable: "read"
            case .startTimer(.discovery(let timer), let seconds): "start \(timer) \(seconds)"
            case .cancelTimer(.discovery(let timer)): "cancel \(timer)"
            default: "\(order.action)"
            }
        }
        let all = words + (change.map { ["\($0)"] } ?? [])
        return all.isEmpty ? "none" : all.joined(separator: ", ")
    }

    private func play(_ table: String, line: UInt = #line) {
        TestSupport.play(table, line: line) {
            var machine = ServiceDiscoveryMachine()
            return { try Self.send($0, to: &machine) }
        }
    }

    func testTables() {
        play(
            """
            A whole table is ready after the fence, whatever changes with ServicesResolved:
            linkUp → none; wanted → none; resolved → fence; changed → none; fencePassed → read; readWhole → found
            isReady → true; wanted → found
            A link that is resolved needs the fence alone:
            linkUp resolved → fence
            A partial table waits for a pause in the changes:
            linkUp resolved; wanted; fencePassed → read; readSome → start quiet 0.25, start limit 5.0
            changed → start quiet 0.25; quiet → cancel limit, read; readSome → found
            What continues to change is read after the limit:
            linkUp resolved; wanted; fencePassed; readSome; changed; limit → cancel quiet, read
            An empty table is a failure after a pause, and another request reads it again:
            linkUp resolved; wanted; fencePassed; readNothing → start quiet 0.25, start limit 5.0; quiet
            readNothing → foundNothing; isReady → false; wanted → start quiet 0.25, start limit 5.0
            Services that appear later are read:
            linkUp resolved; fencePassed; readWhole; changed → start quiet 0.25, start limit 5.0; wanted → none; quiet
            readWhole → found
            """)
    }

    func testLostLinks() {
        play(
            """
            The loss fails what waits for the resolution:
            linkUp; wanted; linkLost → linkLost; hasLink → false
            The loss fails what waits for the fence:
            linkUp resolved; wanted; linkLost → linkLost; hasLink → false
            The loss fails what waits for the table:
            linkUp resolved; fencePassed; wanted; linkLost → linkLost; hasLink → false
            The loss fails what waits for a pause:
            linkUp resolved; fencePassed; readSome; wanted; linkLost → cancel quiet, cancel limit, linkLost
            hasLink → false
            Late reports of a lost link do nothing:
            linkUp resolved; fencePassed; linkLost; fencePassed → none; readWhole → none; changed → none; quiet → none
            resolved → none; linkLost → none; wanted → linkLost
            Services that are no longer resolved void the table:
            linkUp resolved; fencePassed; readWhole; unresolved → isVoid; wanted → none; resolved → fence
            """)
    }
}
