import ArgumentParser
import BlueCapKit

/// A characteristic on the command line: by UUID, by name, by handle, or one of these within a service.
///
/// | text | means |
/// |---|---|
/// | `2A37`, `0x2a37`, 36 characters | a UUID |
/// | `Heart Rate Measurement` | a name, upper and lower case alike |
/// | `@002b` | a handle, as `bluecap explore` shows it |
/// | `180D/2A37`, `Heart Rate/Heart Rate Measurement` | the same within a service |
struct AttributeArgument: ExpressibleByArgument, Equatable, Sendable {
    enum Name: Equatable, Sendable {
        case uuid(CBUUID)
        case handle(UInt32)
        case text(String)

        init?(_ text: String) {
            let digits = text.lowercased().hasPrefix("0x") ? String(text.dropFirst(2)) : text
            if text.hasPrefix("@") {
                let number = text.dropFirst()
                guard number.count <= 5, number.allSatisfy(\.isHexDigit), let handle = UInt32(number, radix: 16) else {
                    return nil
                }
                self = .handle(handle)
            } else if let uuid = CBUUID(validating: digits) {
                self = .uuid(uuid)
            } else if text.isEmpty {
                return nil
            } else {
                self = .text(text)
            }
        }

        func matches(_ uuid: CBUUID, _ handle: UInt32, _ name: String?) -> Bool {
            switch self {
            case .uuid(let wanted): uuid == wanted
            case .handle(let wanted): handle == wanted
            case .text(let wanted): name?.lowercased() == wanted.lowercased()
            }
        }
    }

    /// What the help of each command says that takes one.
    static let discussion = """
        A characteristic is named by its UUID (2A37, or all 36 characters), by its name (\"Heart Rate Measurement\") or by \
        its handle, as `bluecap explore` shows it (@002b); where that is not clear, within its service: 180D/2A37.
        """

    let text: String
    /// What the text can mean: names contain slashes too.
    private let meanings: [(service: Name?, characteristic: Name)]

    init?(argument: String) {
        var meanings: [(service: Name?, characteristic: Name)] = []
        if let whole = Name(argument) { meanings.append((nil, whole)) }
        for slash in argument.indices where argument[slash] == "/" {
            guard let service = Name(String(argument[..<slash])),
                let characteristic = Name(String(argument[argument.index(after: slash)...]))
            else { continue }
            meanings.append((service, characteristic))
        }
        guard !meanings.isEmpty else { return nil }
        text = argument
        self.meanings = meanings
    }

    static func == (left: AttributeArgument, right: AttributeArgument) -> Bool { left.text == right.text }

    /// The characteristic that is meant.
    ///
    /// - Parameter wanted: what it must be usable for; of several that are meant it decides, where one alone has it.
    /// - Throws: ``ToolFailure`` where there is none, where it is not clear which, or where it cannot be used so.
    func find(
        in tree: AttributeTree, usableFor wanted: CBCharacteristicProperties
    ) throws -> AttributeTree.Characteristic {
        var found: [(service: AttributeTree.Service, characteristic: AttributeTree.Characteristic)] = []
        for service in tree.services {
            for characteristic in service.characteristics where isMeant(characteristic, of: service) {
                found.append((service, characteristic))
            }
        }
        if found.count > 1 {
            let usable = found.filter { !$0.characteristic.properties.isDisjoint(with: wanted) }
            if usable.count == 1 { found = usable }
        }
        guard let first = found.first else {
            throw ToolFailure(
                "The peripheral has no characteristic \"\(text)\":",
                "`bluecap explore \(tree.address)` shows what it has.")
        }
        guard found.count == 1 else {
            let candidates = found.map { entry in
                let service = entry.service.name ?? entry.service.uuid.uuidString
                let name = entry.characteristic.name ?? entry.characteristic.uuid.uuidString
                return "\(Self.text(of: entry.characteristic.handle)) (\(service)/\(name))"
            }
            throw ToolFailure(
                "\"\(text)\" is \(found.count) characteristics here; say which by its handle:",
                candidates.joined(separator: ", ") + ".")
        }
        guard !first.characteristic.properties.isDisjoint(with: wanted) else {
            throw RemoteWording.misuse(of: first.characteristic, wanted: wanted)
        }
        return first.characteristic
    }

    private func isMeant(_ characteristic: AttributeTree.Characteristic, of service: AttributeTree.Service) -> Bool {
        meanings.contains { meaning in
            meaning.service?.matches(service.uuid, service.handle, service.name) != false
                && meaning.characteristic.matches(characteristic.uuid, characteristic.handle, characteristic.name)
        }
    }

    /// "@002b", as it is printed and taken.
    static func text(of handle: UInt32) -> String {
        let digits = String(handle, radix: 16)
        return "@" + String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
    }
}
