package import BlueCapDBus
package import Foundation
package import BlueCapGATT
import BlueCapReactor

/// Calls of the methods of attributes. On the loop only, as each `completion` is, which comes exactly once and never before
/// the method returns: with BlueZ's reply, with `noReply` after the time limit, with `disconnected` when the bus is lost, or
/// with `unknownObject` if there is no such attribute. Of all calls at most a hundred are under way at once; the others wait
/// in order, and their time passes.
extension DaemonLink {
    /// Reads a characteristic or a descriptor; see ``BlueZClient/readValue(_:offset:timeout:completion:)``.
    func readValue(_ key: AttributeKey, offset: Int, timeout: Double, completion: @escaping Connection.Completion) {
        if offset == 0 { return call(key, .readWholeValue, timeout: timeout, completion: completion) }
        call(key, .readValue, timeout: timeout, body: { $0.options { $0.offset(offset) } }, completion: completion)
    }

    /// Returns the value in a reply to ``readValue(_:offset:timeout:completion:)``.
    func value(
        in reply: Result<Message, DBusError>, of key: AttributeKey, offset: Int
    ) -> Result<Data, BlueZError> {
        let data = reply.flatMap { message -> Result<Data, DBusError> in
            var reader = message.reader
            // BlueZ's signal about the value comes before the reply, usually with the same bytes.
            let data = reader.data(like: offset == 0 ? objects.value(of: key) : nil)
            return data.map { .success($0) } ?? .failure(.unexpected(message, to: "ReadValue", instead: "ay"))
        }
        return data.mapError(BlueZError.init)
    }

    /// Writes a characteristic or a descriptor; of the reply only success counts (`done`). Without response, success means that
    /// `bluetoothd` has queued the value, of at most MTU - 3 bytes; with one, a value that does not fit into one packet is sent in
    /// parts.
    package func writeValue(
        _ key: AttributeKey, _ value: Data, type: CBCharacteristicWriteType, offset: Int = 0, timeout: Double,
        completion: @escaping Connection.Completion
    ) {
        let isCharacteristic = objects.kind(of: key) == .characteristic
        call(
            key, .writeValue, timeout: timeout,
            body: { writer in
                writer.bytes(value)
                writer.options { options in
                    options.offset(offset)
                    // Descriptors can be written in one way only.
                    guard isCharacteristic else { return }
                    options.entry("type", variant: "s") {
                        $0.string(static: type == .withResponse ? "request" : "command")
                    }
                }
            }, completion: completion)
    }

    /// Turns notifications on; they come by a socket, past the bus. BlueZ refuses with `notPermitted` ("Notify acquired") or
    /// `inProgress` if a process has them already.
    package func acquireNotify(_ key: AttributeKey, completion: @escaping BlueZCompletion<AcquiredSocket>) {
        acquire(key, .acquireNotify, DaemonLink.attributeTimeout, completion)
    }

    /// Gets a socket for writing without response, past the bus.
    package func acquireWrite(
        _ key: AttributeKey, timeout: Double = DaemonLink.attributeTimeout,
        completion: @escaping BlueZCompletion<AcquiredSocket>
    ) {
        acquire(key, .acquireWrite, timeout, completion)
    }

    /// For calls that make one or two requests to the peer, which has 30 seconds for each.
    package static let attributeTimeout = 35.0

    private func acquire(
        _ key: AttributeKey, _ method: AttributeMethod, _ timeout: Double,
        _ completion: @escaping BlueZCompletion<AcquiredSocket>
    ) {
        let loop = loop
        call(key, method, timeout: timeout) { result in
            let socket = Result { () throws(DBusError) in
                try AcquiredSocket(try result.get(), to: "\(method.member)", loop: loop)
            }
            completion(socket.mapError(BlueZError.init))
        }
    }

    func call(
        _ key: AttributeKey, _ method: AttributeMethod, timeout: Double, body: (inout MessageWriter) -> Void = { _ in },
        completion: @escaping Connection.Completion
    ) {
        requireLoop()
        guard let connection else { return loop.post { completion(.failure(.closed)) } }
        let message = objects.withPath(of: key) { path, kind in method[kind].call(path, body: body) }
        guard let message else {
            let error = BlueZError.noSuchObject
            return loop.post { completion(.failure(DBusError(name: error.name, message: error.message))) }
        }
        connection.call(message, timeout: timeout, completion: completion)
    }
}

/// A method of attributes, with the calls of it on the interface of each kind.
struct AttributeMethod: Sendable {
    let member: StaticString
    private let calls: [CallTemplate]

    private init(_ member: StaticString, body: (inout MessageWriter) -> Void = { _ in }) {
        self.member = member
        calls = AttributeKind.allCases.map {
            CallTemplate(destination: BlueZName.owner, interface: $0.table.interface, member: member, body: body)
        }
    }

    subscript(kind: AttributeKind) -> CallTemplate { calls[Int(kind.rawValue)] }

    static let readValue = AttributeMethod("ReadValue")
    /// `ReadValue` without options.
    static let readWholeValue = AttributeMethod("ReadValue") { $0.options { _ in } }
    static let writeValue = AttributeMethod("WriteValue")
    static let startNotify = AttributeMethod("StartNotify")
    static let stopNotify = AttributeMethod("StopNotify")
    static let acquireNotify = AttributeMethod("AcquireNotify") { $0.options { _ in } }
    static let acquireWrite = AttributeMethod("AcquireWrite") { $0.options { _ in } }
}

extension Result<Message, DBusError> {
    /// A reply of which only success counts.
    package var done: Result<Void, BlueZError> { map { _ in }.mapError(BlueZError.init) }
}

extension MessageWriter {
    fileprivate mutating func offset(_ offset: Int) {
        guard offset > 0 else { return }
        // No value is longer than 512 bytes, so a larger offset is out of range in any case.
        entry("offset", variant: "q") { $0.uint16(UInt16(clamping: offset)) }
    }
}

extension AcquiredSocket {
    /// The socket of a reply to `AcquireNotify` or `AcquireWrite`.
    fileprivate convenience init(_ reply: Message, to method: String, loop: any EventLoop) throws(DBusError) {
        var reader = reply.reader
        guard let descriptor = try reader.duplicatedDescriptor(), let mtu = reader.uint16() else {
            throw .unexpected(reply, to: method, instead: "hq")
        }
        self.init(descriptor, mtu: Int(mtu), loop: loop)
    }
}
