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
/// A line is never cut, however long, so that `grep` finds everything. On a terminal it is broken before words.
struct TreeText: Sendable {
    let page: Page
    /// Whether attributes with a name have neither UUID nor handle, so that values have more space.
    var isBrief = false

    /// A line of the tree.
    struct Entry {
        /// That of the attribute; `nil` if there is none.
        var handle: UInt32?
        var parts: [Page.Part]
        /// The beginning of what is broken.
        var indent: String
    }

    private struct Node {
        var handle: UInt32?
        var parts: [Page.Part]
        var children: [Node] = []
    }

    func lines(_ tree: AttributeTree) -> [StyledLine] {
        let numbers = [tree.rssi.map { "  \($0) dBm" }, tree.mtu.map { "  MTU \($0)" }].compactMap { $0 }.joined()
        let pairing = tree.isBonded ? "  bonded" : tree.isPaired ? "  paired" : ""
        let head = "  \(tree.address)  \(tree.addressType)\(numbers)\(pairing)"
        let first = page.line([(tree.name.map(DisplayText.name) ?? "(no name)", [.bold]), (head, [])])
        return [first] + entries(tree).flatMap { page.wrapped($0.parts, below: ($0.indent, [.dim])) }
    }

    /// Returns the lines of the attributes.
    ///
    /// - Parameters:
    ///   - folded: The services without lines for their characteristics.
    ///   - live: The characteristics that are marked, as their values are sent.
    func entries(_ tree: AttributeTree, folded: Set<UInt32> = [], live: Set<UInt32> = []) -> [Entry] {
        let names = Dictionary(tree.services.map { ($0.handle, DisplayText.safe($0.label)) }) { first, _ in first }
        let nodes = tree.services.map { service in
            guard folded.contains(service.handle) else { return node(service, names, live) }
            var folded = service
            folded.characteristics = []
            let count = "  \(page.glyphs.ellipsis) \(Wording.count(service.characteristics.count, "characteristic"))"
            var node = node(folded, names, live)
            node.parts.append((count, [.dim]))
            return node
        }
        var entries: [Entry] = []
        append(nodes.isEmpty ? [Node(parts: [("no services", [.dim])])] : nodes, below: "", to: &entries)
        return entries
    }

    private func append(_ nodes: [Node], below trunk: String, to entries: inout [Entry]) {
        for (index, node) in nodes.enumerated() {
            let isLast = index == nodes.count - 1
            let branch = trunk + (isLast ? page.glyphs.lastBranch : page.glyphs.branch)
            let below = trunk + (isLast ? "   " : page.glyphs.trunk)
            let indent = below + (node.children.isEmpty ? "   " : page.glyphs.trunk)
            entries.append(Entry(handle: node.handle, parts: [(branch, [.dim])] + node.parts, indent: indent))
            append(node.children, below: below, to: &entries)
        }
    }

    // MARK: Nodes

    private func node(_ service: AttributeTree.Service, _ names: [UInt32: String], _ live: Set<UInt32>) -> Node {
        var parts = opening(service, [.bold, .cyan])
        if !service.isPrimary { parts.append(("  secondary", [.dim])) }
        if !service.includes.isEmpty {
            let included = service.includes.map { names[$0] ?? AttributeArgument.text(of: $0) }
            parts.append(("  includes " + included.joined(separator: ", "), [.dim]))
        }
        return Node(
            handle: service.handle, parts: parts,
            children: service.characteristics.map { node($0, isLive: live.contains($0.handle)) })
    }

    private func node(_ characteristic: AttributeTree.Characteristic, isLive: Bool) -> Node {
        let names = characteristic.properties.names
        return Node(
            handle: characteristic.handle,
            parts: (isLive ? [(page.glyphs.new + " ", [.green])] : []) + opening(characteristic, [.bold])
                + (names.isEmpty ? [] : [("  " + names.joined(separator: " "), [.cyan])])
                + parts(of: characteristic.reading),
            children: characteristic.descriptors.map {
                Node(handle: $0.handle, parts: opening($0, []) + parts(of: $0.reading))
            })
    }

    /// Name, UUID, handle. Without a name, the UUID is printed once.
    private func opening(_ attribute: some TreeAttribute, _ tints: [Tint]) -> [Page.Part] {
        let label: Page.Part = (DisplayText.safe(attribute.label), tints)
        guard !isBrief || attribute.name == nil else { return [label] }
        return [
            label, (attribute.name == nil ? "" : "  " + attribute.uuid.uuidString, []),
            ("  " + AttributeArgument.text(of: attribute.handle), [.dim]),
        ]
    }

    private func parts(of reading: AttributeTree.Reading) -> [Page.Part] {
        switch reading {
        case .none: []
        case .value(let value): [("  " + value.text, [.green])]
        case .failed(let why): [("  (" + DisplayText.safe(why) + ")", [.red])]
        }
    }
}

/// The tree as one JSON object, for programs.
///
/// Every object of a kind has all members, in one order; what is not known is `null` or empty.
extension AttributeTree {
    var json: JSON {
        [
            "identifier": JSON(identifier.uuidString), "address": JSON(address), "addressType": JSON(addressType),
            "name": JSON(name), "rssi": JSON(rssi), "mtu": JSON(mtu), "paired": JSON(isPaired),
            "bonded": JSON(isBonded), "services": JSON(services.map(Self.json)),
        ]
    }

    private static func json(_ service: Service) -> JSON {
        JSON(
            service.identity + [
                ("primary", JSON(service.isPrimary)), ("includes", JSON(service.includes.map { JSON($0) })),
                ("characteristics", JSON(service.characteristics.map(json))),
            ])
    }

    private static func json(_ characteristic: Characteristic) -> JSON {
        JSON(
            characteristic.identity + [("properties", JSON(characteristic.properties.names))]
                + characteristic.reading.members
                + [("descriptors", JSON(characteristic.descriptors.map { JSON($0.identity + $0.reading.members) }))])
    }
}

extension TreeAttribute {
    var identity: JSON.Members {
        [("uuid", JSON(uuid.uuidString)), ("name", JSON(name)), ("handle", JSON(handle))]
    }
}

extension AttributeTree.Reading {
    fileprivate var members: JSON.Members {
        switch self {
        case .none: AttributeValue.noMembers + [("error", .null)]
        case .value(let value): value.members + [("error", .null)]
        case .failed(let why): AttributeValue.noMembers + [("error", JSON(why))]
        }
    }
}
