import Foundation
import GatewayCore

/// The newest payload of each retained topic of a gateway, and which of them the broker does not have. A value.
struct RetainedMessages {
    private var payloads: [String: Data] = [:]
    /// The topics to publish, in the sequence of their changes.
    private var pending: [String] = []

    /// Replaces the payload of a topic; an empty one removes it at the broker.
    mutating func set(_ topic: String, _ payload: Data) {
        guard payloads[topic] != payload else { return }
        payloads[topic] = payload
        if !pending.contains(topic) { pending.append(topic) }
    }

    /// Whether the transport has taken all.
    var isFlushed: Bool { pending.isEmpty }

    /// The broker may have lost all.
    mutating func connected() { pending = payloads.keys.sorted() }

    /// Publishes what is pending, until the transport takes no more.
    mutating func flush(_ publish: (BrokerMessage) throws -> Void) {
        var sent = 0
        defer { pending.removeFirst(sent) }
        for topic in pending {
            guard let payload = payloads[topic] else { continue }
            guard (try? publish(BrokerMessage(topic: topic, payload: payload, isRetained: true))) != nil else { return }
            sent += 1
            if payload.isEmpty { payloads[topic] = nil }
        }
    }
}
