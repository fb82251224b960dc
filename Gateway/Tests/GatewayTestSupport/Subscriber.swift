public import Foundation
public import GatewayBroker
public import GatewayCore

/// A subscriber with a session of its own, which records all that it receives. It ends with the test.
public final class Subscriber: EndsWithTest {
    public let transport: MosquittoTransport
    private let recorder = Recorder()
    private let tasks: [Task<Void, Never>]

    private actor Recorder {
        var messages: [BrokerMessage] = []
        func append(_ message: BrokerMessage) { messages.append(message) }
    }

    /// Connects, subscribes and waits until the broker has accepted both.
    ///
    /// - Parameters:
    ///   - addresses: Those of the broker, as `mqtt://127.0.0.1:1883`.
    ///   - filters: What to subscribe to.
    ///   - configure: Changes further options, such as user and password.
    public init(
        _ addresses: [String], _ filters: [String], identifier: String = "subscriber-\(UUID().uuidString)",
        limit: Duration = .seconds(30), configure: (inout MosquittoOptions) -> Void = { _ in }
    ) async throws {
        var options = MosquittoOptions(addresses: try addresses.map(BrokerAddress.init), clientIdentifier: identifier)
        options.limits.received = 100_000
        options.limits.receivedBytes = 256 << 20
        configure(&options)
        let transport = try MosquittoTransport(options: options)
        for filter in filters { transport.subscribe(filter) }
        self.transport = transport
        tasks = [
            Task { await transport.run() },
            Task { [recorder] in
                for await case .received(let message) in transport.events { await recorder.append(message) }
            },
        ]
        Lifetime.keep(self)
        do {
            try await eventually(limit: limit, "the subscriber's connection") { transport.statistics.connections > 0 }
        } catch {
            await stop()
            throw error
        }
    }

    func end() { for task in tasks { task.cancel() } }

    /// All messages so far, in the order in which they arrived.
    public var messages: [BrokerMessage] {
        get async { await recorder.messages }
    }

    /// Waits until a number of messages has arrived, and returns all.
    public func messages(atLeast count: Int, limit: Duration = .seconds(10)) async throws -> [BrokerMessage] {
        try await eventually(limit: limit, "\(count) messages at the subscriber") { await messages.count >= count }
        return await messages
    }

    /// Ends the connection in order.
    public func stop() async {
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }
}
