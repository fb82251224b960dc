import BlueCapKit
import XCTest

/// A bus with a socket and a server that accepts no connection: a client's `connect` blocks.
final class BlockedBusTests: XCTestCase {
    func testADiagnosisOfABlockedBusEndsInTime() async throws {
        let path = NSTemporaryDirectory() + "blocked-\(UUID().uuidString.prefix(8))"
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var clients: [Int32] = []
        defer {
            for descriptor in clients + [listener] { close(descriptor) }
            unlink(path)
        }
        XCTAssertEqual(call(bind, listener, path), 0)
        XCTAssertEqual(listen(listener, 0), 0)
        // The queue of connections that are not accepted is filled.
        var isFull = false
        for _ in 0..<100 where !isFull {
            let client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            clients.append(client)
            isFull = call(connect, client, path) != 0
        }
        XCTAssertTrue(isFull)
        let report = await BlueCapDiagnosis.report(
            configuration: .init(busAddress: "unix:path=\(path)"), timeout: .milliseconds(500))
        XCTAssertTrue(report.hasProblem)
        XCTAssertEqual(report.findings.first?.found, "The bus has not replied in time.")
    }

    /// Calls `bind` or `connect` with the address of a socket in the file system.
    private func call(
        _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ descriptor: Int32, _ path: String
    ) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
