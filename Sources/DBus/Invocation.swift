import CDBus
import Futures

/// One call of a method that this side exports, waiting for its answer.
///
/// It is answered exactly once, at any time and on any thread. One that is released without an answer answers itself with
/// an error, so that no caller waits for ever; a second answer is a mistake in the program, and traps.
package final class Invocation: Sendable {
    package let message: Message
    private let method: MethodDescription
    private let send: Locked<(@Sendable (Message) -> Void)?>

    init(_ message: Message, of method: MethodDescription, send: @escaping @Sendable (Message) -> Void) {
        self.message = message
        self.method = method
        self.send = Locked(send)
    }

    deinit {
        let send = send.withLock { $0 }
        send?(.error(to: message, .failed("\(method.name) was not answered.")))
    }

    /// The arguments, from the first on.
    package var reader: MessageReader { message.reader }
    /// Who calls: its unique name.
    package var sender: String { message.sender ?? "" }

    /// Answers with the method's results, which must have the signature that its table tells.
    package func reply(_ body: (inout MessageWriter) -> Void = { _ in }) {
        let reply = Message.reply(to: message, body: body)
        precondition(
            !reply.isComplete || equal(cdbus_message_signature(reply.pointer), method.output.pointer),
            """
            \(method.name) returns "\(String(cString: method.output.pointer))", and was answered with \
            "\(reply.signature)": write what its table says.
            """)
        answer(reply)
    }

    /// Answers with an error.
    package func fail(_ error: DBusError) {
        answer(.error(to: message, error))
    }

    /// Answers with any message, whatever the table says: for simulated misbehaviour.
    package func answer(unchecked reply: Message) {
        answer(reply)
    }

    /// Releases the caller without any answer, for ever: for simulated misbehaviour. The caller times out.
    package func leaveUnanswered() {
        send.withLock { $0 = nil }
    }

    private func answer(_ reply: Message) {
        let send = send.withLock { send in
            defer { send = nil }
            return send
        }
        guard let send else { preconditionFailure("\(method.name) was answered twice: answer each invocation once.") }
        if !message.expectsNoReply { send(reply) }
    }
}
