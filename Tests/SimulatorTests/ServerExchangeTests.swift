import XCTest

@testable import BlueZSimulator

/// Requests as packets, and attributes as handles: the tables below everything that serves.
final class ServerExchangeTests: XCTestCase {
    /// The packets of a request, each answered with the next of these, and what it comes to.
    private func run(_ kind: AttributeRequest.Kind, mtu: Int = 23, _ answers: [AttributeResult]) -> [String] {
        var exchange = ServerExchange(AttributeRequest(id: 1, handle: 3, kind: kind), mtu: mtu)
        var words: [String] = []
        var rest = answers[...]
        var result: AttributeResult?
        while result == nil {
            switch exchange.first {
            case .read(_, let offset): words.append("read \(offset)")
            case .write(let handle, let bytes): words.append("write \(handle) \(bytes.count)")
            case .prepare(_, let offset, let bytes): words.append("prepare \(offset) \(bytes.count)")
            case .execute(let isDone): words.append("execute \(isDone)")
            }
            guard let answer = rest.popFirst() else { return words + ["…"] }
            result = exchange.answered(answer)
        }
        if case .bytes(let bytes) = result { words.append("= \(bytes.count)") }
        if case .error(let code) = result { words.append("! \(code)") }
        return words
    }

    private func bytes(_ count: Int) -> AttributeResult { .bytes([UInt8](repeating: 1, count: count)) }

    func testARequestIsSoManyPackets() {
        let read = AttributeRequest.Kind.read(offset: 0)
        func write(_ count: Int, _ offset: Int = 0, _ type: VirtualWriteType = .request) -> AttributeRequest.Kind {
            .write(offset: offset, bytes: [UInt8](repeating: 1, count: count), type: type)
        }
        let done = bytes(0)
        let table: [(String, [String], [String])] = [
            ("a short read", run(read, [bytes(21)]), ["read 0", "= 21"]),
            ("a full packet asks again", run(read, [bytes(22), bytes(0)]), ["read 0", "read 22", "= 22"]),
            ("a long read", run(read, [bytes(22), bytes(5)]), ["read 0", "read 22", "= 27"]),
            ("from the middle", run(.read(offset: 7), [bytes(1)]), ["read 7", "= 1"]),
            ("refused in the midst", run(read, [bytes(22), .error(7)]), ["read 0", "read 22", "! 7"]),
            ("no longer than 512", run(read, mtu: 513, [bytes(512)]), ["read 0", "= 512"]),
            ("one write", run(write(20), [done]), ["write 3 20", "= 0"]),
            ("an empty one", run(write(0), [done]), ["write 3 0", "= 0"]),
            (
                "a long one", run(write(21), [done, done, done]),
                ["prepare 0 18", "prepare 18 3", "execute true", "= 0"]
            ),
            ("into the middle", run(write(1, 9), [done, done]), ["prepare 9 1", "execute true", "= 0"]),
            ("reliable", run(write(1, 0, .reliable), [done, done]), ["prepare 0 1", "execute true", "= 0"]),
            ("refused", run(write(20), [.error(3)]), ["write 3 20", "! 3"]),
            (
                "refused while it is prepared", run(write(40), [done, .error(9), done]),
                ["prepare 0 18", "prepare 18 18", "execute false", "! 9"]
            ),
            ("a subscription", run(.configure(1), [done]), ["write 3 2", "= 0"]),
        ]
        for (name, packets, expected) in table { XCTAssertEqual(packets, expected, name) }
    }

    func testEachAdapterBeginsWithBlueZsOwnServices() {
        let database = AttributeDatabase(
            name: "simulated", hasAddressResolution: DaemonTraits(.v5_66).hasAddressResolution, version: .v5_66)
        XCTAssertEqual(database.services.map(\.handle), [1, 8, 18])
        XCTAssertEqual(database.services.map(\.count), [7, 10, 3])
        XCTAssertEqual(database.handle("2A05", descriptor: nil), 10)
        XCTAssertEqual(database.handle("2A05", descriptor: "2902"), 11)
        XCTAssertEqual(database.attributes[3]?.content, .value(Array("simulated".utf8)))
    }

    func testFlagsAndWhatTheyMean() {
        let no = LinkSecurity.none
        let table: [([String], Set<CharacteristicFlag>, read: LinkSecurity?, write: LinkSecurity?, LinkSecurity)] = [
            (["read"], [.read], no, nil, no), (["write"], [.write], nil, no, no),
            (["write-without-response"], [.writeWithoutResponse], nil, no, no), (["notify"], [.notify], nil, nil, no),
            (["indicate"], [.indicate], nil, nil, no), (["broadcast"], [.broadcast], nil, nil, no),
            (["encrypt-read"], [.read], .encrypted, nil, no), (["encrypt-write"], [.write], nil, .encrypted, no),
            (["encrypt-authenticated-read"], [.read], .authenticated, nil, no),
            (["secure-write"], [.write], nil, .secure, no), (["encrypt-notify"], [.notify], nil, nil, .encrypted),
            (["secure-indicate"], [.indicate], nil, nil, .secure),
            (["reliable-write"], [.reliableWrite, .extendedProperties], nil, no, no),
            (["writable-auxiliaries"], [.writableAuxiliaries, .extendedProperties], nil, nil, no),
            (["authenticated-signed-writes"], [.authenticatedSignedWrites], nil, no, no),
            (["read", "write", "notify"], [.read, .write, .notify], no, no, no),
        ]
        for (texts, expected, read, write, subscribing) in table {
            let flags = CharacteristicFlags(.strings(texts))
            XCTAssertEqual(flags?.flags, expected, "\(texts)")
            XCTAssertEqual(flags?.permissions, AttributePermissions(read: read, write: write), "\(texts)")
            XCTAssertEqual(flags?.subscribing, subscribing, "\(texts)")
        }
        XCTAssertNil(CharacteristicFlags(.strings(["encrypt-broadcast"])))
        XCTAssertNil(CharacteristicFlags(.string("read")))
    }
}
