import DBus
import Foundation
import GATT
import Reactor

extension ValueRecord {
    /// How long the rest of a long read is taken from what its beginning was taken from, in seconds.
    private static let snapshotLife = 10.0

    // MARK: Reading

    /// - Parameter value: What is known without asking anybody.
    func readCalled(_ invocation: Invocation, value: Data?) {
        guard core.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
        // What may be neither read nor written has no permissions in 5.66, which then lets everybody do both.
        guard flags.allowsReading else { return invocation.fail(.refusal(.readNotPermitted, ofRead: true)) }
        var reader = invocation.reader
        let options = ServerOptions(&reader)
        if let value = value ?? snapshot(options) { return reply(value, options, invocation) }
        guard let delegate = core.delegate else { return invocation.fail(.refusal(.unlikelyError, ofRead: true)) }
        let request = ServerReadRequest(attribute: id, peer: options.peer, offset: options.offset)
        let answer = ServerAnswer<Data>(loop: core.client.loop) { result in
            switch result {
            case .success(let value): self.reply(value, options, invocation)
            case .failure(let error): invocation.fail(.refusal(error.code, ofRead: true))
            }
        }
        delegate.readRequested(request, answer)
    }

    private func snapshot(_ options: ServerOptions) -> Data? {
        let now = core.client.loop.now
        guard options.offset > 0, let snapshot = snapshots[options.peer.device],
            now.seconds(since: snapshot.usedAt) < Self.snapshotLife
        else {
            snapshots[options.peer.device] = nil
            return nil
        }
        return snapshot.value
    }

    /// BlueZ sends what it is given as the packet for that offset, and cuts it to the packet's size.
    private func reply(_ value: Data, _ options: ServerOptions, _ invocation: Invocation) {
        let value = value.prefix(WriteAssembly.longestValue)
        guard options.offset <= value.count else {
            snapshots[options.peer.device] = nil
            return invocation.fail(.refusal(.invalidOffset, ofRead: true))
        }
        let rest = value.dropFirst(options.offset)
        let isLong = rest.count >= (options.peer.mtu ?? 23) - 1
        snapshots[options.peer.device] =
            isLong ? Snapshot(value: Data(value), usedAt: core.client.loop.now) : nil
        invocation.reply { $0.bytes(rest) }
    }

    // MARK: Writing

    func writeCalled(_ invocation: Invocation) {
        guard core.isFromDaemon(invocation) else { return invocation.fail(.foreignCaller) }
        guard flags.allowsWriting else { return invocation.fail(.refusal(.writeNotPermitted, ofRead: false)) }
        var reader = invocation.reader
        guard let value = reader.data() else {
            return invocation.fail(.refusal(.invalidPdu, ofRead: false))
        }
        let options = ServerOptions(&reader)
        if options.asksForAuthorization {
            return give(value, at: options.offset, options, invocation) { $0.writeAuthorizationRequested($1, $2) }
        }
        let key = options.peer.device
        if assemblies[key]?.isContinued(at: options.offset) == false { giveCollected(key, options) }
        cancelAssemblyTimer(key)
        switch assemblies[key, default: WriteAssembly()].written(value, at: options.offset, mtu: options.peer.mtu) {
        case .give(let offset, let value):
            give(value, at: offset, options, invocation) { $0.writeRequested($1, $2) }
        case .collect:
            assemblyTimers[key] = core.client.loop.schedule(after: WriteAssembly.pause) { [weak self] in
                self?.giveCollected(key, options)
            }
            invocation.reply()
        case .refuse(let code):
            invocation.fail(.refusal(code, ofRead: false))
        }
    }

    private func give(
        _ value: Data, at offset: Int, _ options: ServerOptions, _ invocation: Invocation?,
        _ ask: (any ServerDelegate, ServerWriteRequest, ServerAnswer<Void>) -> Void
    ) {
        guard let delegate = core.delegate else {
            invocation?.fail(.refusal(.unlikelyError, ofRead: false))
            return
        }
        let request = ServerWriteRequest(
            attribute: id, peer: options.peer, offset: offset, value: value,
            expectsAnswer: invocation.map { !$0.message.expectsNoReply } ?? false)
        let answer = ServerAnswer<Void>(loop: core.client.loop) { result in
            switch result {
            case .success: invocation?.reply()
            case .failure(let error): invocation?.fail(.refusal(error.code, ofRead: false))
            }
        }
        ask(delegate, request, answer)
    }

    private func giveCollected(_ key: ObjectKey?, _ options: ServerOptions) {
        cancelAssemblyTimer(key)
        guard let (offset, value) = assemblies[key]?.collected() else { return }
        give(value, at: offset, options, nil) { $0.writeRequested($1, $2) }
    }

    private func cancelAssemblyTimer(_ key: ObjectKey?) {
        if let timer = assemblyTimers.removeValue(forKey: key) { core.client.loop.cancel(timer) }
    }

    /// The attribute is not there any more.
    func forget() {
        for key in Array(assemblyTimers.keys) { cancelAssemblyTimer(key) }
        assemblies = [:]
        snapshots = [:]
    }
}
