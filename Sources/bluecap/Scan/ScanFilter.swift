import BlueCapKit
import Foundation

/// Decides which peripherals a scan shows, by what they advertise.
struct ScanFilter: Sendable {
    enum Criterion: Sendable {
        case named
        /// The name, or the address, begins with this text.
        case prefix(String)
        /// The name contains a match.
        case expression(Locked<Regex<AnyRegexOutput>>)
        /// The address begins with this text, which is in upper case.
        case address(String)
        case service(CBUUID)
        case company(Set<UInt16>)
        /// The data of a company begins with these bytes.
        case data(Data)

        func isMet(by sighting: Sighting) -> Bool {
            switch self {
            case .named: sighting.name != nil
            case .prefix(let text):
                sighting.name?.hasPrefix(text) == true || sighting.address.hasPrefix(text.uppercased())
            case .expression(let expression):
                expression.withLock { (try? $0.firstMatch(in: sighting.name ?? "")) != nil } && sighting.name != nil
            case .address(let text): sighting.address.hasPrefix(text)
            case .service(let service): sighting.services.contains(service)
            case .company(let companies): !companies.isDisjoint(with: sighting.manufacturerData.keys)
            case .data(let start): sighting.manufacturerData.values.contains { $0.starts(with: start) }
            }
        }
    }

    /// Of each list that is not empty, a criterion has to be met.
    var wanted: [[Criterion]] = []
    /// None of them may be met.
    var unwanted: [Criterion] = []

    /// The only prefix of a name that is wanted, which BlueZ can compare.
    var prefix: String? {
        wanted.lazy.compactMap { if $0.count == 1, case .prefix(let text) = $0[0] { text } else { nil } }.first
    }

    func accepts(_ sighting: Sighting) -> Bool {
        wanted.allSatisfy { $0.isEmpty || $0.contains { $0.isMet(by: sighting) } }
            && !unwanted.contains { $0.isMet(by: sighting) }
    }
}
