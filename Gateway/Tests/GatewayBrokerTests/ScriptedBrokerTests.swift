import Foundation
import GatewayBroker
import GatewayCore
import GatewayTestSupport
import XCTest

/// A broker that replies what a test says, also what no broker would.
final class ScriptedBroker: Sendable {
    /// A packet of MQTT 3.1.1: its first byte, and what follows its length.
    struct Packet: Sendable {
        var first: UInt8
        var body: [UInt8]

        var kind: Kind? { Kind(rawValue: first >> 4) }
        /// The packet identifier of SUBSCRIBE, or of PUBLISH with quality 1.
        var identifier: [UInt8] {
            switch kind {
            case .publish:
                let length = Int(body[0]) << 8 | Int(body[1])
                return Array(body[(2 + length)..<(4 + length)])
            default: return Array(body[0..<2])
            }
        }
    }

    enum Kind: UInt8 {
        case connect = 1
        case publish = 3
        case subscribe = 8
        case ping = 12
        case disconnect = 14
    }

    /// What is done after a packet: bytes that are sent, or `nil` for the end of the connection.
    typealias Script = @Sendable (_ connection: Int, _ packet: Packet) -> [UInt8]?

    let port: UInt16
    private let listener: FileHandle

    var address: String { "mqtt://127.0.0.1:\(port)" }

    init(_ script: @escaping Script) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        listener = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
                    && listen(descriptor, 100) == 0
            }
        }
        guard isListening else { throw LimitExceeded("no port: \(String(cString: strerror(errno)))") }
        port = UInt16(bigEndian: address.sin_port)
        Thread { Self.accept(descriptor, script) }.start()
    }

    /// Ends the wait for connections, and with it the thread.
    func stop() { shutdown(listener.fileDescriptor, Int32(SHUT_RDWR)) }

    deinit { stop() }

    private static func accept(_ listener: Int32, _ script: @escaping Script) {
        var count = 0
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else { return }
            count += 1
            let number = count
            Thread { serve(descriptor, number, script) }.start()
        }
    }

    private static func serve(_ descriptor: Int32, _ number: Int, _ script: Script) {
        defer { close(descriptor) }
        func read(_ count: Int) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: count)
            guard count > 0 else { return bytes }
            return recv(descriptor, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
        }
        while let first = read(1)?[0] {
            var length = 0
            for shift in stride(from: 0, through: 21, by: 7) {
                guard let byte = read(1)?[0] else { return }
                length |= Int(byte & 0x7F) << shift
                if byte < 0x80 { break }
            }
            guard let body = read(length), let reply = script(number, Packet(first: first, body: body)) else { return }
            guard reply.isEmpty || send(descriptor, reply, reply.count, Int32(MSG_NOSIGNAL)) >= 0 else { return }
        }
    }
}

/// What a broker replies that accepts everything.
private func accepting(_ packet: ScriptedBroker.Packet) -> [UInt8]? {
    switch packet.kind {
    case .connect: [0x20, 2, 0, 0]
    case .subscribe: [0x90, 3] + packet.identifier + [1]
    case .publish where packet.first & 6 != 0: [0x40, 2] + packet.identifier
    case .ping: [0xD0, 0]
    case .disconnect: nil
    default: []
    }
}

final class ScriptedBrokerTests: XCTestCase {
    private func firstReason(_ options: MosquittoOptions) async throws -> String {
        let client = try Client(options)
        try await eventually("a reason") { await !client.reasons.isEmpty }
        let (reasons, connections) = (await client.reasons, await client.connections)
        await client.stop()
        XCTAssertEqual(connections, 0)
        return reasons[0]
    }

    func testReportsEachReasonForARefusal() async throws {
        let texts = [
            1: "it does not speak MQTT 3.1.1.", 2: "it does not allow the client identifier \"gateway\".",
            3: "its MQTT service is not available.", 4: "the user name or the password is wrong.",
            5: "not authorised; it wants a user name and a password, or a client certificate.",
        ]
        for (code, text) in texts {
            let broker = try ScriptedBroker { _, _ in [0x20, 2, 0, UInt8(code)] }
            let reason = try await firstReason(try options(broker.address))
            XCTAssertEqual(reason, "\(broker.address) has refused the connection: \(text)")
        }
        let unknown = try ScriptedBroker { _, _ in [0x20, 2, 0, 99] }
        let reason = try await firstReason(try options(unknown.address))
        XCTAssertEqual(reason, "\(unknown.address) does not keep to MQTT 3.1.1.")
    }

    func testABrokerThatDoesNotReplyIsLeft() async throws {
        for isAccepting in [false, true] {
            // It accepts the connection and not the subscription, or neither.
            let broker = try ScriptedBroker { _, packet in
                packet.kind == .connect && isAccepting ? [0x20, 2, 0, 0] : packet.kind == .disconnect ? nil : []
            }
            var impatient = try options(broker.address)
            impatient.connectLimit = .milliseconds(300)
            let client = try Client(impatient, subscribe: ["a"])
            try await eventually("a reason") { await !client.reasons.isEmpty }
            let (reasons, connections) = (await client.reasons, await client.connections)
            await client.stop()
            XCTAssertEqual(reasons[0], "\(broker.address) has not accepted the connection within 0.3 seconds.")
            XCTAssertEqual(connections, 0)
        }
    }

    func testAnAddressThatDoesNotReplyBlocksNothing() async throws {
        // A socket whose queue of connections is full ignores further ones, as a host that is switched off.
        let port = try Loopback.freePort()
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var sockets = [listener]
        defer { for socket in sockets { close(socket) } }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                let size = socklen_t(MemoryLayout<sockaddr_in>.size)
                XCTAssertEqual(bind(listener, pointer, size), 0)
                XCTAssertEqual(listen(listener, 0), 0)
                for _ in 0..<3 {
                    let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
                    sockets.append(filler)
                    _ = connect(filler, pointer, size)
                }
            }
        }
        for scheme in ["mqtt", "mqtts"] {
            var impatient = try options("\(scheme)://127.0.0.1:\(port)")
            impatient.connectLimit = .milliseconds(300)
            let reason = try await firstReason(impatient)
            XCTAssertEqual(reason, "\(impatient.addresses[0]) has not accepted the connection within 0.3 seconds.")
            let patient = try MosquittoTransport(options: try options("\(scheme)://127.0.0.1:\(port)"))
            let run = Task { await patient.run() }
            let begin = ContinuousClock.now
            run.cancel()
            await run.value
            XCTAssertLessThan(ContinuousClock.now - begin, .seconds(1))
        }
    }

    func testAConnectionWithoutAcknowledgementsIsEndedAndTheirTokensAreForgotten() async throws {
        // The first connection acknowledges nothing. The second acknowledges what it gets, and identifiers that it did not
        // get.
        let broker = try ScriptedBroker { connection, packet in
            guard packet.kind == .publish else { return accepting(packet) }
            guard connection > 1 else { return [] }
            return [0x40, 2, 0xEA, packet.identifier[1]] + (accepting(packet) ?? [])
        }
        var impatient = try options(broker.address)
        impatient.acknowledgementLimit = .milliseconds(1_500)
        impatient.limits.inFlight = 200
        let client = try Client(impatient)
        try await client.connected()
        for token in 1...150 { await client.submit(message("a", "\(token)"), token: UInt64(token)) }
        try await client.connected(2)
        try await eventually("all acknowledgements") { await client.acknowledged.count == 150 }
        let reasons = await client.reasons
        await client.stop()
        XCTAssertEqual(reasons, ["\(broker.address) has not acknowledged a message within 1.5 seconds."])
        let acknowledged = await client.acknowledged
        XCTAssertEqual(Set(acknowledged.values), [1])
        let publications = await client.publications
        XCTAssertEqual(publications, 300)
    }

    func testARefusedSubscriptionIsRequestedAgain() async throws {
        let requests = Counter()
        let broker = try ScriptedBroker { _, packet in
            guard packet.kind == .subscribe else { return accepting(packet) }
            return [0x90, 3] + packet.identifier + [requests.increment() < 4 ? 0x80 : 1]
        }
        var quick = try options(broker.address)
        quick.subscriptionRetry = .milliseconds(100)
        let client = try Client(quick, subscribe: ["a", "b"])
        try await client.connected()
        // Both are refused, requested again, one is refused again, and then accepted.
        try await eventually("the requests") { requests.value == 5 }
        let reasons = await client.reasons
        await client.stop()
        XCTAssertEqual(reasons, [])
    }

    func testABrokerThatEndsEachConnectionIsTriedWithGrowingDelays() async throws {
        let broker = try ScriptedBroker { _, packet in packet.kind == .publish ? nil : accepting(packet) }
        let client = try Client(try options(broker.address))
        let begin = ContinuousClock.now
        await client.submit(message("a", ""), token: 1)
        // At least 0.5 s and 1 s.
        try await client.connected(3)
        XCTAssertGreaterThan(ContinuousClock.now - begin, .milliseconds(1_500))
        await client.stop()
        let reasons = await client.reasons
        XCTAssertTrue(reasons[0].hasPrefix("\(broker.address) has ended the connection"), reasons[0])
    }

    func testNoInputFromABrokerCrashesTheTransport() async throws {
        let seed = SeededNumbers.seed
        print("seed \(seed)")
        let kinds: [UInt8] = [0x20, 0x30, 0x32, 0x34, 0x3D, 0x40, 0x50, 0x62, 0x70, 0x90, 0xB0, 0xD0, 0xE0, 0xF0, 0x00]
        var generator = SeededNumbers(seed)
        let seeds = (0..<24).map { _ in generator.next() }
        let brokers = try seeds.map { seed in
            try ScriptedBroker { connection, packet in
                var random = SeededNumbers(packet.body.reduce(seed &+ UInt64(connection)) { $0 &* 31 &+ UInt64($1) })
                guard packet.kind != .disconnect else { return nil }
                var bytes = accepting(packet) ?? []
                // Some garbage comes before the broker has accepted the connection, some after.
                if random.next() % 16 == 0 { bytes = [] }
                guard random.next() % 4 == 0 else { return bytes }
                for _ in 0..<Int(random.next() % 20) {
                    let body = (0..<Int(random.next() % 12)).map { _ in UInt8(truncatingIfNeeded: random.next() % 7) }
                    let length = random.next() % 8 == 0 ? UInt8(truncatingIfNeeded: random.next()) : UInt8(body.count)
                    bytes += [kinds[Int(random.next() % UInt64(kinds.count))], length] + body
                }
                return bytes
            }
        }
        let clients = try brokers.map { broker in
            var impatient = try options(broker.address)
            (impatient.connectLimit, impatient.acknowledgementLimit) = (.milliseconds(500), .milliseconds(500))
            impatient.closeLimit = .milliseconds(100)
            return try Client(impatient, subscribe: ["a", "b"])
        }
        for token in 1...200 {
            for client in clients { await client.submit(message("a", "\(token)"), token: UInt64(token)) }
        }
        for client in clients {
            // What some brokers send does no harm.
            try await eventually("two ends, or all acknowledgements") {
                let (ends, acknowledged) = (await client.reasons.count, await client.acknowledged.count)
                return ends >= 2 || acknowledged == 200
            }
        }
        for client in clients { await client.stop() }
        for client in clients {
            let acknowledged = await client.acknowledged
            XCTAssertTrue(acknowledged.values.allSatisfy { $0 == 1 })
        }
        for broker in brokers { broker.stop() }
    }
}

/// A number that several threads increment.
private final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var number = 0

    var value: Int {
        lock.lock()
        defer { lock.unlock() }
        return number
    }

    func increment() -> Int {
        lock.lock()
        defer { lock.unlock() }
        number += 1
        return number
    }
}
