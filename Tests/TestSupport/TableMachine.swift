import XCTest

/// A machine whose tests are tables: events, and the orders that the machine returns for each.
public protocol TableMachine {
    associatedtype Event
    associatedtype Order: Equatable
    /// Returns the orders; `nil` for a condition that does not hold.
    mutating func handle(_ event: Event) -> [Order]?
}

/// Checks one row of a table. Orders that are `nil` are not compared. A failure names the row and the event.
public func check<Machine: TableMachine>(
    _ name: String, _ machine: Machine, _ steps: (event: Machine.Event, orders: [Machine.Order]?)...,
    file: StaticString = #filePath, line: UInt = #line
) {
    var machine = machine
    for (number, step) in steps.enumerated() {
        let orders = machine.handle(step.event)
        guard orders == nil || step.orders != nil && step.orders != orders else { continue }
        XCTFail(
            "\(name): event \(number + 1), \(step.event): \(orders.map { "\($0)" } ?? "does not hold: \(machine)")",
            file: file, line: line)
    }
}
