import XCTest

@testable import BlueCapKit

/// States to keep, and folders to keep them in.
enum RestorationSamples {
    static let identifier = "us.gnos.BlueCap.documentation-manager"

    static let strap = RestorationState.Connection(
        address: BluetoothAddress(rawValue: 0xC05A_1700_180D), addressType: .random,
        subscriptions: [
            .init(service: CBUUID(string: "180D"), characteristic: CBUUID(string: "2A37"), handle: 0x2B),
            .init(
                service: CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"),
                characteristic: CBUUID(string: "6E400003-B5A3-F393-E0A9-E50E24DCCA9E"), handle: 0xFFFE),
        ])

    static let tag = RestorationState.Connection(
        address: BluetoothAddress(rawValue: 0x546C_0E80_3F01), addressType: .public, timeoutRetries: 3,
        disconnectRetries: 0, connectionTimeout: 12.5)

    static var full: RestorationState {
        var scan = ScanRequest()
        scan.services = [CBUUID(string: "180D"), CBUUID(string: "AA80")]
        scan.allowsDuplicates = true
        scan.rssiThreshold = -70
        scan.pattern = "Pulse \"7\" /\u{1F496}"
        scan.watchdog = 0
        return RestorationState(connections: [tag, strap], scan: scan)
    }

    static let small = RestorationState(connections: [tag])
}

extension RestorationPlace {
    /// A place of the central role.
    init(identifier: String, root: String) {
        self.init(identifier: identifier, root: root, kind: RestorationState.folder)
    }

    var file: String { path(of: fileName) }
    var draft: String { path(of: draftName) }
    var lock: String { path(of: lockName) }

    /// The path to which a file is moved that is not a usable state.
    func aside(_ number: Int) -> String { "\(file).unreadable-\(number)" }
}

extension StateKeeper {
    /// Returns when everything that was requested so far is done.
    func wait() { Self.waitForAll() }
}

typealias RestorationStore = StateStore<RestorationState>

extension StateStore.Opening {
    /// Nothing was kept.
    static var fresh: Self { .kept(State()) }
}

/// A folder that goes with its test.
final class TemporaryFolder {
    let path: String

    init() {
        path = NSTemporaryDirectory() + "bluecap-tests-" + UUID().uuidString
        // For the user alone, whatever the umask: state in a folder that others can write is not believed.
        try? FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var files: [String] { ((try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []).sorted() }
}
