import XCTest

/// Each ring plays each body of `Tests/TestSupport/…Bodies.swift`, or leaves it out for a reason that is listed here.
final class SharedBodiesTests: XCTestCase {
    private enum Ring: CaseIterable {
        case inProcess, onPrivateBus, radioLab

        var modules: [String] {
            switch self {
            case .inProcess: ["BlueCapKitTests", "BluejayTests", "DBusTests"]
            case .onPrivateBus: ["WireTests"]
            case .radioLab: ["RadioTests"]
            }
        }
    }

    /// What a ring leaves out: a body, or all bodies of a type.
    private struct Omission {
        let ring: Ring
        let type: String
        /// `nil` for all bodies of the type.
        var body: String?
        let reason: String
    }

    private static let omissions = [
        Omission(
            ring: .inProcess, type: "BluejayBodies",
            reason: "They block the test's thread in real time; BluejayTests has the same steps in virtual time."),
        Omission(
            ring: .onPrivateBus, type: "PairingBodies", body: "anAdapterWithoutKeysIsReportedAndRepaired",
            reason: "It takes more than a minute in real time."),
        Omission(
            ring: .onPrivateBus, type: "PairingServerBodies",
            reason: "A virtual central reports no events that a test could wait for in real time."),
        Omission(
            ring: .radioLab, type: "BusBodies", reason: "They need no bluetoothd, and ring 3 has the same dbus-daemon."),
    ]

    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    private func sources(of module: String) throws -> [String] {
        let folder = Self.tests.appendingPathComponent(module)
        let files = try XCTUnwrap(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        return try files.compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }.map {
            try String(contentsOf: $0, encoding: .utf8)
        }
    }

    /// Returns the functions of the types of shared bodies that other modules can call, by the name of the type.
    private func bodies() throws -> [String: Set<String>] {
        var bodies: [String: Set<String>] = [:]
        for source in try sources(of: "TestSupport") {
            var type: String?
            for line in source.split(separator: "\n") {
                if line.hasPrefix("    public func ") || line.hasPrefix("    package func ") {
                    if let type, let match = line.firstMatch(of: /func (\w+)\(/) {
                        bodies[type, default: []].insert(String(match.1))
                    }
                } else if !" /}".contains(line.prefix(1)),
                    let match = line.firstMatch(of: /(?:class|struct|enum|protocol|extension) (\w+)/)
                {
                    type = match.1.hasSuffix("Bodies") ? String(match.1) : nil
                }
            }
        }
        return bodies
    }

    func testEachRingPlaysEachSharedBodyOrHasAReason() throws {
        let bodies = try bodies()
        XCTAssertGreaterThan(bodies.values.map(\.count).reduce(0, +), 100)
        for ring in Ring.allCases {
            let sources = try ring.modules.flatMap(sources)
            for (type, functions) in bodies {
                // A file of calls that several rings share is linked, and has a type alias in the module.
                let players = sources.filter { $0.contains("\(type)(") || $0.contains("extension \(type)Tests {") }
                let calls = Set(players.flatMap { $0.matches(of: /\.(\w+)\(/).map { String($0.1) } })
                let omissions = Self.omissions.filter { $0.ring == ring && $0.type == type }
                let omitted = Set(omissions.flatMap { $0.body.map { [$0] } ?? Array(functions) })
                XCTAssertEqual(functions.subtracting(calls), omitted, "\(ring), \(type): left out")
            }
        }
    }

    func testWhatIsLeftOutExists() throws {
        let bodies = try bodies()
        for omission in Self.omissions {
            let functions = try XCTUnwrap(bodies[omission.type], omission.type)
            if let body = omission.body { XCTAssertTrue(functions.contains(body), body) }
        }
    }
}
