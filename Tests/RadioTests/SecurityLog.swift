import Foundation

/// What `hci0` has sent and received of pairings from ``begin()`` on, by `btmon`; `Tests/RadioLab/btmon.py` lists the events.
struct SecurityLog: CustomStringConvertible {
    private let events: [String]

    static func begin() throws { try RadioLab.order(.server, "monitor", "start") }

    /// Ends the recording.
    init() throws { events = try RadioLab.order(.server, "security").split(separator: "\n").map(String.init) }

    /// What the two ends have asked for in their requests and responses, such as `mitm`, each with its capability.
    private var features: [[String]] {
        events.map { $0.split(separator: " ").map(String.init) }.filter { ["request", "response"].contains($0.first) }
    }

    /// Both ends have offered LE Secure Connections, and have exchanged public keys.
    var usesSecureConnections: Bool { bothAsk(for: "secure-connections") && exchangesPublicKeys }

    func bothAsk(for feature: String) -> Bool { features.count >= 2 && features.allSatisfy { $0.contains(feature) } }

    var exchangesPublicKeys: Bool { events.filter { $0 == "public-key" }.count >= 2 }

    /// The kinds of the long term keys, such as `P-256 authenticated`.
    var keys: Set<String> { Set(events.filter { $0.hasPrefix("key ") }.map { String($0.dropFirst(4)) }) }

    var description: String { events.joined(separator: ", ") }
}
