import ArgumentParser
import BlueCapKit
import Foundation

/// A characteristic on the command line: by UUID, by name, by handle, or one of these within a service.
///
/// | text | means |
/// |---|---|
/// | `2A37`, `0x2a37`, 36 characters | a UUID |
/// | `Heart Rate Measurement` | a name, in upper or lower case |
/// | `@002b`, `@0x2b` | a handle: that of the declaration, as `bluecap explore` prints it, or that of the value |
/// | `180D/2A37`, `Heart Rate/Heart Rate Measurement` | the same within a service |
struct AttributeArgument: ExpressibleByArgument, Sendable {
    enum Name: Sendable {
        case uuid(CBUUID)
        case handle(UInt32)
        case text(String)

        init?(_ text: String) {
            if text.hasPrefix("@") {
                let number = text.lowercased().hasPrefix("@0x") ? text.dropFirst(3) : text.dropFirst()
                guard number.count <= 5, number.allSatisfy(\.isHexDigit), let handle = UInt32(number, radix: 16) else {
                    return nil
                }
                self = .handle(handle)
            } else if let uuid = CBUUID(validating: text) {
                self = .uuid(uuid)
            } else if text.isEmpty {
                return nil
            } else {
                self = .text(text)
            }
        }

        func matches(_ uuid: CBUUID, _ handles: [UInt32], _ name: String?) -> Bool {
            switch self {
            case .uuid(let wanted): uuid == wanted
            case .handle(let wanted): handles.contains(wanted)
            case .text(let wanted): name?.lowercased() == wanted.lowercased()
            }
        }
    }

    /// For the help of each command that takes one.
    static let discussion = """
        A characteristic is given by its UUID (2A37, or all 36 characters), by its name (\"Heart Rate Measurement\") or by \
        its handle, as `bluecap explore` prints it (@002b), or that of its value, as gatttool takes it (@002c); if several \
        match, within its service: 180D/2A37.
        """

    let text: String
    /// What the text can mean: a name may contain a slash.
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

    /// Returns the characteristic that the text names.
    ///
    /// - Parameters:
    ///   - wanted: The properties of which it needs one. If the text names several characteristics, and only one of them has
    ///     such a property, that one is returned.
    ///   - descriptions: Those of characteristics, by their handles, for the error if the text names several.
    /// - Throws: ``ToolFailure`` if there is none, if there are several, or if it has none of the properties.
    func find(
        in tree: AttributeTree, usableFor wanted: CBCharacteristicProperties, descriptions: [UInt32: String] = [:]
    ) throws -> AttributeTree.Characteristic {
        let found = candidates(in: tree, usableFor: wanted)
        guard let first = found.first else { throw absence(from: tree) }
        guard found.count == 1 else {
            throw ToolFailure(
                "\"\(text)\" names \(found.count) characteristics; use the handle of one:",
                found.map { Self.text(of: $0, descriptions[$0.characteristic.handle]) }.joined(separator: ", ") + ".")
        }
        guard !first.characteristic.properties.isDisjoint(with: wanted) else {
            throw Self.misuse(of: first.characteristic, wanted)
        }
        return first.characteristic
    }

    /// Returns the descriptor that the text names, by its handle or after its characteristic: `2A37/2901`; `nil` if it names a
    /// characteristic or nothing. Several are an error.
    func descriptor(in tree: AttributeTree) throws -> (label: String, entry: any TreeAttribute)? {
        let slash = text.lastIndex(of: "/")
        let owner = slash.flatMap { AttributeArgument(argument: String(text[..<$0])) }
        guard candidates(in: tree, usableFor: []).isEmpty,
            let name = Name(slash.map { String(text[text.index(after: $0)...]) } ?? text)
        else { return nil }
        var found: [(label: String, entry: any TreeAttribute)] = []
        for service in tree.services {
            for entry in service.characteristics where slash == nil || owner?.isNamed(entry, of: service) == true {
                let named = entry.descriptors.filter { name.matches($0.uuid, [$0.handle], $0.name) }
                found += named.map { ("\(entry.label)/\($0.label)", $0) }
            }
        }
        guard found.count > 1 else { return found.first }
        let handles = found.map { "\(Self.text(of: $1.handle)) (\($0))" }.joined(separator: ", ")
        throw ToolFailure("\"\(text)\" names \(found.count) descriptors; use the handle of one:", handles + ".")
    }

    typealias Candidate = (service: AttributeTree.Service, characteristic: AttributeTree.Characteristic)

    /// Returns the characteristics that the text can mean: those that it names, or the only one of them that has one of the
    /// properties.
    func candidates(in tree: AttributeTree, usableFor wanted: CBCharacteristicProperties) -> [Candidate] {
        let found = tree.services.flatMap { service in
            service.characteristics.filter { isNamed($0, of: service) }.map { Candidate(service, $0) }
        }
        let usable = found.filter { !$0.characteristic.properties.isDisjoint(with: wanted) }
        return usable.count == 1 ? usable : found
    }

    /// `@000b (Environmental Sensing/Temperature; read, notify; "Outdoor")`
    private static func text(of candidate: Candidate, _ description: String?) -> String {
        let (service, characteristic) = candidate
        var parts = [
            "\(service.name ?? service.uuid.uuidString)/\(characteristic.label)",
            characteristic.properties.names.joined(separator: ", "),
        ]
        if let description { parts.append(description) }
        return "\(text(of: characteristic.handle)) (\(parts.filter { !$0.isEmpty }.joined(separator: "; ")))"
    }

    private func isNamed(_ characteristic: AttributeTree.Characteristic, of service: AttributeTree.Service) -> Bool {
        meanings.contains { meaning in
            meaning.service?.matches(service.uuid, [service.handle], service.name) != false
                && meaning.characteristic.matches(characteristic.uuid, characteristic.handles, characteristic.name)
        }
    }

    /// Why the text names no characteristic, and what it names instead.
    private func absence(from tree: AttributeTree) -> ToolFailure {
        let list = "`bluecap explore \(tree.address)` lists those that it has."
        guard case .handle(let handle)? = meanings.last?.characteristic else {
            // As gatttool spells a handle; with four digits it is a UUID.
            let digits = text.lowercased().hasPrefix("0x") ? text.dropFirst(2) : ""
            let isLikeHandle = (1...4).contains(digits.count) && digits.allSatisfy(\.isHexDigit)
            let names = tree.services.flatMap { service in
                service.characteristics.flatMap { [$0.label, "\(service.label)/\($0.label)"] }
            }
            return ToolFailure(
                "The peripheral has no characteristic \"\(text)\":",
                (isLikeHandle ? "a handle begins with @, such as @\(text); " : "") + list
                    + Suggestion.text(for: text, among: names))
        }
        let name = Self.text(of: handle)
        for service in tree.services {
            if service.handle == handle {
                return ToolFailure(
                    "\(name) is the handle of a service, \(service.label), and not of a characteristic:", list)
            }
            for characteristic in service.characteristics {
                if let descriptor = characteristic.descriptors.first(where: { $0.handle == handle }) {
                    return ToolFailure(
                        "\(name) is the handle of a descriptor, \(descriptor.label), and not of a characteristic:",
                        "that of its characteristic, \(characteristic.label), is \(Self.text(of: characteristic.handle))."
                    )
                }
                if characteristic.handles.contains(handle) {
                    return ToolFailure("\(name) is a characteristic of another service, \(service.label):", list)
                }
            }
        }
        return ToolFailure("The peripheral has no characteristic with the handle \(name):", list)
    }

    /// Why a characteristic has none of the properties that a command needs, and which command it has them for.
    private static func misuse(
        of characteristic: AttributeTree.Characteristic, _ wanted: CBCharacteristicProperties
    ) -> ToolFailure {
        let name = characteristic.label
        let properties = characteristic.properties
        let words = properties.names.joined(separator: ", ")
        let reason = words.isEmpty ? "it has no properties." : "its properties are: \(words)."
        if wanted.contains(.read) {
            let sends = !properties.isDisjoint(with: [.notify, .indicate])
            return ToolFailure(
                "\(name) cannot be read:", reason, sends ? "`bluecap notify` prints the values that it sends." : "")
        }
        if !wanted.isDisjoint(with: [.notify, .indicate]) {
            return ToolFailure(
                "\(name) sends no values:", reason,
                properties.contains(.read) ? "`bluecap read` reads its value." : "")
        }
        return properties.contains(.write)
            ? ToolFailure("\(name) cannot be written without response:", "omit --without-response.")
            : ToolFailure("\(name) cannot be written:", reason)
    }

    /// "@002b".
    static func text(of handle: UInt32) -> String { "@" + String(format: "%04x", Int(handle)) }
}
