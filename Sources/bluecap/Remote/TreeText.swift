import BlueCapKit
import Foundation

/// Draws what a peripheral offers as a tree for people.
///
/// ```
/// Pulse Strap 7F  C0:5A:17:00:18:0D  random  -56 dBm  MTU 247
/// └─ Heart Rate  180D  @0028
///    ├─ Heart Rate Measurement  2A37  @0029  notify
///    │  └─ Client Characteristic Configuration  2902  @002b  0000
///    └─ Body Sensor Location  2A38  @002c  read  Chest
/// ```
///
/// A line is never cut, however long, so that `grep` finds everything.
struct TreeText: Sendable {
    var glyphs: Glyphs
    var isColoured: Bool

    func lines(_ tree: AttributeTree) -> [StyledLine] {
        var lines = [head(tree)]
        let names = Dictionary(tree.services.map { ($0.handle, label($0.name, $0.uuid)) }) { first, _ in first }
        for (index, service) in tree.services.enumerated() {
            let isLast = index == tree.services.count - 1
            lines.append(line(service, branch(isLast), names))
            append(service.characteristics, below: trunk(isLast), to: &lines)
        }
        if tree.services.isEmpty {
            lines.append(StyledLine(glyphs.lastBranch + "no services", .dim, coloured: isColoured))
        }
        return lines
    }

    // MARK: Lines

    private func head(_ tree: AttributeTree) -> StyledLine {
        var line = StyledLine()
        line.append(tree.name.map(DisplayText.name) ?? "(no name)", [.bold], coloured: isColoured)
        line.append("  \(tree.address)  \(tree.addressType)")
        if let rssi = tree.rssi { line.append("  \(rssi) dBm") }
        if let mtu = tree.mtu { line.append("  MTU \(mtu)") }
        return line
    }

    private func line(
        _ service: AttributeTree.Service, _ branch: String, _ names: [UInt32: String]
    ) -> StyledLine {
        var line = opening(branch, service.name, service.uuid, service.handle, [.bold, .cyan])
        if !service.isPrimary { line.append("  secondary", [.dim], coloured: isColoured) }
        if !service.includes.isEmpty {
            let included = service.includes.map { names[$0] ?? AttributeArgument.text(of: $0) }
            line.append("  includes " + included.joined(separator: ", "), [.dim], coloured: isColoured)
        }
        return line
    }

    private func append(
        _ characteristics: [AttributeTree.Characteristic], below trunk: String, to lines: inout [StyledLine]
    ) {
        for (index, characteristic) in characteristics.enumerated() {
            let isLast = index == characteristics.count - 1
            var line = opening(
                trunk + branch(isLast), characteristic.name, characteristic.uuid, characteristic.handle, [.bold])
            let names = characteristic.properties.names
            if !names.isEmpty { line.append("  " + names.joined(separator: " "), [.cyan], coloured: isColoured) }
            append(characteristic.reading, to: &line)
            lines.append(line)
            for (index, descriptor) in characteristic.descriptors.enumerated() {
                let last = index == characteristic.descriptors.count - 1
                var line = opening(
                    trunk + self.trunk(isLast) + branch(last), descriptor.name, descriptor.uuid, descriptor.handle, [])
                append(descriptor.reading, to: &line)
                lines.append(line)
            }
        }
    }

    /// Branch, name, UUID, handle. Without a name, the UUID is printed once.
    private func opening(
        _ branch: String, _ name: String?, _ uuid: CBUUID, _ handle: UInt32, _ tints: [Tint]
    ) -> StyledLine {
        var line = StyledLine()
        line.append(branch, [.dim], coloured: isColoured)
        line.append(label(name, uuid), tints, coloured: isColoured)
        if name != nil { line.append("  " + uuid.uuidString) }
        line.append("  " + AttributeArgument.text(of: handle), [.dim], coloured: isColoured)
        return line
    }

    private func append(_ reading: AttributeTree.Reading, to line: inout StyledLine) {
        switch reading {
        case .none: break
        case .value(let value):
            line.append("  " + value.text, [.green], coloured: isColoured)
        case .failed(let why):
            line.append("  (" + DisplayText.safe(why) + ")", [.red], coloured: isColoured)
        }
    }

    private func label(_ name: String?, _ uuid: CBUUID) -> String { name.map(DisplayText.safe) ?? uuid.uuidString }
    private func branch(_ isLast: Bool) -> String { isLast ? glyphs.lastBranch : glyphs.branch }
    private func trunk(_ isLast: Bool) -> String { isLast ? "   " : glyphs.trunk }
}

/// The tree as one JSON object, for programs.
///
/// Every object of a kind has all members, in one order; what is not known is `null` or empty.
extension AttributeTree {
    var json: JSON {
        [
            "identifier": JSON(identifier.uuidString), "address": JSON(address), "addressType": JSON(addressType),
            "name": JSON(name), "rssi": JSON(rssi), "mtu": JSON(mtu), "services": JSON(services.map(\.json)),
        ]
    }
}

extension AttributeTree.Service {
    fileprivate var json: JSON {
        [
            "uuid": JSON(uuid.uuidString), "name": JSON(name), "handle": JSON(handle), "primary": JSON(isPrimary),
            "includes": JSON(includes.map { JSON($0) }), "characteristics": JSON(characteristics.map(\.json)),
        ]
    }
}

extension AttributeTree.Characteristic {
    /// The members that identify the characteristic.
    var identity: JSON.Members {
        [("uuid", JSON(uuid.uuidString)), ("name", JSON(name)), ("handle", JSON(handle))]
    }

    fileprivate var json: JSON {
        JSON(
            identity + [("properties", JSON(properties.names))] + reading.members
                + [("descriptors", JSON(descriptors.map(\.json)))])
    }
}

extension AttributeTree.Descriptor {
    fileprivate var json: JSON {
        JSON([("uuid", JSON(uuid.uuidString)), ("name", JSON(name)), ("handle", JSON(handle))] + reading.members)
    }
}

extension AttributeTree.Reading {
    fileprivate var members: JSON.Members {
        switch self {
        case .none: [("value", .null), ("fields", .null), ("error", .null)]
        case .value(let value): value.members + [("error", .null)]
        case .failed(let why): [("value", .null), ("fields", .null), ("error", JSON(why))]
        }
    }
}
