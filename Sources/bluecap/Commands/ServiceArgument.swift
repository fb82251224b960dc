import ArgumentParser
import BlueCapKit

/// A service on the command line: `180D`, `0x180D`, a long UUID, or a name from the assigned numbers.
struct ServiceArgument: ExpressibleByArgument, Equatable, Sendable {
    let uuid: CBUUID

    init?(argument: String) {
        let digits = argument.lowercased().hasPrefix("0x") ? String(argument.dropFirst(2)) : argument
        guard let uuid = CBUUID(validating: digits) ?? Self.uuid(named: argument) else { return nil }
        self.uuid = uuid
    }

    /// The services of the Bluetooth SIG's own range: Assigned Numbers, 3.4.
    private static func uuid(named name: String) -> CBUUID? {
        (0x1800...0x18FF).lazy.map { CBUUID(UInt32($0)) }
            .first { AssignedNumbers.serviceName($0)?.lowercased() == name.lowercased() }
    }
}
