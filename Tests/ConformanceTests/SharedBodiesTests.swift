import Foundation
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

    /// All bodies of a type, which a ring leaves out.
    private struct Omission: Hashable {
        let ring: Ring
        let bodies: String
        let reason: String
    }

    private static let omissions: Set<Omission> = [
        Omission(
            ring: .inProcess, bodies: "BluejayBodies",
            reason: "They block the test's thread in real time; BluejayTests has the same steps in virtual time."),
        Omission(
            ring: .onPrivateBus, bodies: "PairingBodies",
            reason:
                "They wait for users and for BlueZ's limits, minutes in real time. The lab plays them over a real bus."),
        Omission(ring: .onPrivateBus, bodies: "PairingServerBodies", reason: "As for PairingBodies."),
        Omission(
            ring: .radioLab, bodies: "BusBodies",
            reason: "They have no bluetoothd, and ring 3 has the same dbus-daemon."),
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
                let players = sources.filter { $0.contains("\(type)(") }
                let calls = Set(players.flatMap { $0.matches(of: /\.(\w+)\(/).map { String($0.1) } })
                let isOmitted = Self.omissions.contains { $0.ring == ring && $0.bodies == type }
                let (played, missing) = (functions.intersection(calls), functions.subtracting(calls))
                if isOmitted {
                    XCTAssertEqual(played, [], "\(ring) plays bodies of \(type), which its reason excludes.")
                } else {
                    XCTAssertEqual(missing, [], "\(ring) does not play these bodies of \(type).")
                }
            }
        }
    }

    func testOnlyExistingBodiesAreLeftOut() throws {
        let types = Set(try bodies().keys)
        for omission in Self.omissions { XCTAssertTrue(types.contains(omission.bodies), "\(omission)") }
    }
}
