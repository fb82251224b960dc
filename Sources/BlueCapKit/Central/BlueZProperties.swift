import BlueCapBlueZ
import BlueCapDBus
import BlueCapFutures
import BlueCapReactor
package import Foundation

/// The value of a property of BlueZ, as it is on the bus.
package indirect enum BlueZValue: Sendable {
    package typealias Entry = (name: String, value: BlueZValue)

    case flag(Bool)
    case number(Int)
    case text(String)
    case bytes(Data)
    case list([BlueZValue])
    case entries([Entry])

    /// Reads the next value; `nil` if it has a type that BlueZ's properties do not have.
    init?(_ reader: inout MessageReader) {
        switch reader.signature.first {
        case "b": self = .flag(reader.bool() ?? false)
        case "y": self = .number(Int(reader.byte() ?? 0))
        case "n": self = .number(Int(reader.int16() ?? 0))
        case "q": self = .number(Int(reader.uint16() ?? 0))
        case "u": self = .number(Int(reader.uint32() ?? 0))
        case "s", "o": self = .text(reader.withString { String(decoding: $0, as: UTF8.self) } ?? "")
        case "a":
            if let bytes = reader.bytes() {
                self = .bytes(Data(bytes))
                return
            }
            var (entries, values): ([Entry], [BlueZValue]) = ([], [])
            let hasEntries = reader.dictionary { entry in
                guard let name = BlueZValue(&entry), let value = BlueZValue(&entry) else { return }
                switch name {
                case .number(let number): entries.append((String(format: "0x%04X", number), value))
                case .text(let text): entries.append((text, value))
                default: break
                }
            }
            if !hasEntries { reader.array { element in BlueZValue(&element).map { values.append($0) } } }
            self = hasEntries ? .entries(entries) : .list(values)
        default:
            guard let content = reader.variant({ BlueZValue(&$0) }) else { return nil }
            self = content
        }
    }
}

extension CentralManager {
    /// Returns the adapters of BlueZ in the order of their names, with all properties, or throws a ``BusError``.
    package func adapters() async throws -> [(name: String, properties: [BlueZValue.Entry])] {
        let keys = try await reply { $1(.success($0.withTree { AdapterChoice.candidates(in: $0) })) }
        var adapters: [(name: String, properties: [BlueZValue.Entry])] = []
        for (candidate, key) in keys.ordered(by: { $0.key.name < $1.key.name }) {
            adapters.append((candidate.name, try await properties(of: key)))
        }
        return adapters
    }

    /// Sets a property of the adapter in use to a flag or a text, or throws a ``BusError``.
    package func setAdapterProperty(_ name: String, to value: BlueZValue) async throws {
        let (adapter, state) = session.core.withLock { ($0.shell.adapter, $0.managerState) }
        guard let adapter else { throw BusError.unusable(state) }
        try await reply { client, completion in
            let signature = if case .flag = value { "b" } else { "s" }
            client.daemon.setProperty(name, signature, of: adapter, completion: completion) { writer in
                if case .flag(let flag) = value { writer.bool(flag) }
                if case .text(let text) = value { writer.string(text) }
            }
        }
    }

    /// Returns all properties of BlueZ's device, or throws a ``BusError``.
    package func properties(of peripheral: Peripheral) async throws -> [BlueZValue.Entry] {
        try await properties(of: device(of: peripheral))
    }

    /// Ends the link of a peripheral, whichever program has made it, or throws a ``BusError``.
    package func endLink(of peripheral: Peripheral) async throws {
        let device = try device(of: peripheral)
        try await reply { $0.connector.disconnect(device, completion: $1) }
    }

    private func device(of peripheral: Peripheral) throws(BusError) -> ObjectKey {
        guard let device = session.readRecord(peripheral.key, { $0.present }) else { throw BusError.noDevice }
        return device
    }

    /// Returns all properties of an adapter or a device, also those that this library does not use.
    private func properties(of object: ObjectKey) async throws -> [BlueZValue.Entry] {
        var reader = try await reply { $0.daemon.getProperties(of: object, completion: $1) }.reader
        guard case .entries(let properties)? = BlueZValue(&reader) else { return [] }
        return properties
    }

    /// Returns the reply to a call of BlueZ, or throws a ``BusError``. The call is made on the loop.
    private func reply<Reply: Sendable>(
        _ call: @escaping @Sendable (BlueZClient, @escaping BlueZCompletion<Reply>) -> Void
    ) async throws -> Reply {
        try await withCheckedThrowingContinuation { continuation in
            session.loop.perform { [client = session.client] in
                call(client) { continuation.resume(with: $0.mapError { BusError($0) }) }
            }
        }
    }
}
