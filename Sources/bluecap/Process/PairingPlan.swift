import BlueCapKit
import Foundation

/// How a command pairs, and how it replies to the requests of a pairing.
struct PairingPlan: Sendable {
    /// Where a passkey that has to be entered comes from.
    enum Source: Sendable {
        case option(Passkey)
        /// One line for each pairing, read when it is needed.
        case lines(InputLines)
    }

    var policy = PairingPolicy.reject
    /// `nil` if the user is asked.
    var passkey: Source?
    /// Whether pairings are agreed to, and numbers confirmed, without asking the user.
    var agrees = false

    /// Replies to a request.
    ///
    /// - Parameter rejecting: Called with the reason before it is rejected.
    /// - Throws: ``ToolFailure`` with the reason and what to do, if it was rejected.
    func answer(
        _ request: PairingRequest, _ console: Console, rejecting: (ToolFailure) -> Void = { _ in }
    ) async throws(ToolFailure) {
        do {
            if let passkey = try await console.ask({ () throws(ToolFailure) in try await decide(request) }) {
                request.enter(passkey)
            } else {
                request.confirm()
            }
        } catch {
            rejecting(error)
            request.reject()
            throw error
        }
    }

    /// Rejects a request to display a passkey if there is no terminal. A pairing with a displayed passkey does not wait for an
    /// answer, so call this in the handler of the request: then it is rejected before the loop receives BlueZ's next message.
    ///
    /// - Parameter rejecting: Called with the reason before it is rejected.
    func rejectUnseen(_ request: PairingRequest, rejecting: (ToolFailure) -> Void = { _ in }) {
        guard case .displayPasskey = request.kind, !Terminal.isInForeground else { return }
        rejecting(Self.unseen(request))
        request.reject()
    }

    private static func unseen(_ request: PairingRequest) -> ToolFailure {
        rejection(
            "\(request.peer.label) asks its user for a passkey that this side shows, and there is no terminal to show it: "
                + "run the command on a terminal, or pair without a passkey. No option can choose this passkey.")
    }

    private static func rejection(_ why: String) -> ToolFailure { ToolFailure(why, status: ToolFailure.notPaired) }

    /// Decides about a request: with the options, or by asking the user until the request ends. Returns the passkey to enter;
    /// `nil` to agree.
    private func decide(_ request: PairingRequest) async throws(ToolFailure) -> Passkey? {
        let name = request.peer.label
        let prompt = PasskeyPrompt()
        switch (request.kind, passkey) {
        case (.displayPasskey, _):
            guard let prompt else { throw Self.unseen(request) }
            prompt.show(request.question)
        case (.enterPasskey, .option(let passkey)): return passkey
        case (.enterPasskey, .lines(let lines)):
            guard let line = await value(before: request, { await lines.next() }) else {
                throw Self.rejection("Standard input had no passkey for \(name) in time.")
            }
            guard let passkey = Passkey(digits: line.trimmingCharacters(in: .whitespaces)) else {
                throw Self.rejection("The line on standard input was not a passkey, which has one to six digits.")
            }
            return passkey
        case (.enterPasskey, nil):
            guard let prompt else {
                throw Self.rejection(
                    "\(name) shows a passkey, and there is no terminal on which it can be entered: give it with --passkey."
                )
            }
            guard let passkey = await value(before: request, { await prompt.passkey(request.question) }) else {
                throw Self.rejection("No passkey was entered for \(name).")
            }
            return passkey
        case (.confirm, _) where agrees, (.authorize, _) where agrees: break
        case (.confirm, _):
            try await agree(
                request, prompt,
                orElse: "\(name) shows a number to compare, and there is no terminal to show the other one: "
                    + "run the command on a terminal, or agree without a comparison with --yes.")
        case (.authorize, _):
            try await agree(
                request, prompt,
                orElse: "Whether to pair with \(name) has to be asked, and there is no terminal: agree with --yes.")
        }
        return nil
    }

    /// Returns if the user agrees.
    ///
    /// - Parameter why: The reason of the rejection without a terminal.
    private func agree(
        _ request: PairingRequest, _ prompt: PasskeyPrompt?, orElse why: String
    ) async throws(ToolFailure) {
        guard let prompt else { throw Self.rejection(why) }
        let name = request.peer.label
        switch await value(before: request, { await prompt.agrees(to: request.question) }) {
        case true?: return
        case false?: throw Self.rejection("The pairing with \(name) was rejected.")
        case nil: throw Self.rejection("The pairing with \(name) was not answered in time, or \(name) has ended it.")
        }
    }

    /// Waits for a value; `nil` if the request ends first.
    private func value<Value: Sendable>(
        before request: PairingRequest, _ read: @escaping @Sendable () async -> Value?
    ) async -> Value? {
        await withTaskGroup(of: Value?.self) { group in
            group.addTask(operation: read)
            group.addTask {
                try? await request.whenEnded().value
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    /// Does a command's work with a peripheral, and replies to the requests of the manager's pairings until it is done. A
    /// request that is rejected ends the work.
    ///
    /// - Parameters:
    ///   - wasAsked: Set to true with the first request.
    ///   - kept: Where the reason of the newest rejection is kept for the work, which then continues.
    /// - Throws: What the work throws, or ``ToolFailure`` with the status ``ToolFailure/notPaired``.
    func answerRequests(
        of manager: CentralManager, _ console: Console, _ wasAsked: Locked<Bool>,
        keeping kept: Locked<ToolFailure?>? = nil,
        during work: @escaping @Sendable () async throws -> Void
    ) async throws {
        // The rejection also fails the work, perhaps first.
        let refusal = kept ?? Locked<ToolFailure?>(nil)
        let rejecting: @Sendable (ToolFailure) -> Void = { failure in refusal.withLock { $0 = failure } }
        try await EventLoop<PairingRequest>.run { requests in
            requests.observe(manager.whenPairingIsRequested()) { request in
                rejectUnseen(request, rejecting: rejecting)
                return request
            }
            let task = Task(operation: work)
            requests.perform {
                for await request in requests {
                    wasAsked.withLock { $0 = true }
                    do { try await answer(request, console, rejecting: rejecting) } catch {
                        if kept == nil { task.cancel() }
                    }
                }
            }
            // Whether a cancellation is a failure is decided by the work, which may return normally.
            let result = await withTaskCancellationHandler {
                await task.result
            } onCancel: {
                task.cancel()
            }
            if kept == nil, let failure = refusal.withLock({ $0 }) { throw failure }
            try result.get()
        }
    }
}

extension PairingRequest {
    /// What the user is asked, or is to do; safe to print.
    var question: String {
        switch kind {
        case .displayPasskey(let passkey, _): "The passkey to enter at \(peer.label) is \(passkey.digits)."
        case .enterPasskey: "Enter the passkey that \(peer.label) shows:"
        case .confirm(let passkey): "Does \(peer.label) show the number \(passkey.digits)?"
        case .authorize: "Pair with \(peer.label)?"
        }
    }
}

extension PairingPeer {
    /// The device's name and its address, which the name could imitate; safe to print.
    var label: String {
        switch self {
        case .central(let central): central.address?.description ?? "a central"
        case .peripheral(let peripheral):
            peripheral.knownName.map { "\(DisplayText.name($0)) (\(peripheral.address))" } ?? peripheral.address
        }
    }
}
