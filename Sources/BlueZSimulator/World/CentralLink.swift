public import Foundation
import Futures
import Reactor

/// A central's connection to an adapter that serves, made by ``Simulator/connect(_:to:)``: what it asks, and what it hears.
///
/// Everything may be called on any thread; what is asked happens on the simulator's loop, in the order of the calls. It
/// ends with ``disconnect()``, with the simulator, or when the link ends; it does not end by being released.
public final class CentralLink: Sendable {
    public enum State: Hashable, Sendable {
        /// Waiting for somebody who advertises.
        case connecting
        case connected
        /// Ended, or never made. It is not tried again: connect anew.
        case disconnected
    }

    private struct Contents {
        var state = State.connecting
        var values: [CentralValue] = []
        var requests: [UInt64: CentralRequest] = [:]
        var number: UInt64 = 0
    }

    public let central: VirtualCentral
    /// The number of the adapter that it is connected to.
    public let adapter: Int
    let number: UInt64
    private let stage: Stage
    private let contents = Locked(Contents())

    init(_ central: VirtualCentral, adapter: Int, number: UInt64, stage: Stage) {
        self.central = central
        self.adapter = adapter
        self.number = number
        self.stage = stage
    }

    var key: DeviceKey { DeviceKey(adapter: adapter, address: central.address) }

    // MARK: Looking

    public var state: State { contents.withLock { $0.state } }

    /// Everything that came without being asked for, in its order.
    public var values: [CentralValue] { contents.withLock { $0.values } }

    /// What it would discover now: all services of the adapter, BlueZ's own too.
    public var services: [ServedService] {
        stage.look { $0.daemon.databases[adapter]?.services.map(ServedService.init) ?? [] }
    }

    // MARK: Asking

    /// Reads a characteristic, all of it, in as many packets as it takes; or one of its descriptors.
    ///
    /// - Parameters:
    ///   - characteristic: by its UUID, or by its handle where that is there twice.
    ///   - descriptor: the UUID of a descriptor of it, such as `"2901"`.
    ///   - offset: where in the value to begin.
    ///   - completion: called once, on the simulator's loop.
    @discardableResult
    public func read(
        _ characteristic: AttributeSelector, descriptor: String? = nil, offset: Int = 0,
        completion: (@Sendable (Result<[UInt8], CentralFailure>) -> Void)? = nil
    ) -> CentralRequest {
        ask(completion) { database in
            database.handle(characteristic, descriptor: descriptor).map { .read(handle: $0, offset: offset) }
        }
    }

    /// Writes a characteristic or one of its descriptors. What does not fit one packet is prepared and executed. A command
    /// succeeds at once, whatever becomes of it.
    @discardableResult
    public func write(
        _ bytes: [UInt8], to characteristic: AttributeSelector, descriptor: String? = nil, offset: Int = 0,
        type: VirtualWriteType = .request, completion: (@Sendable (Result<[UInt8], CentralFailure>) -> Void)? = nil
    ) -> CentralRequest {
        ask(completion) { database in
            database.handle(characteristic, descriptor: descriptor).map {
                .write(handle: $0, offset: offset, bytes: bytes, type: type)
            }
        }
    }

    /// Subscribes to a characteristic's notifications, or to its indications.
    @discardableResult
    public func subscribe(
        to characteristic: AttributeSelector, indications: Bool = false,
        completion: (@Sendable (Result<[UInt8], CentralFailure>) -> Void)? = nil
    ) -> CentralRequest {
        configure(characteristic, bits: indications ? 2 : 1, completion)
    }

    /// Ends a subscription.
    @discardableResult
    public func unsubscribe(
        from characteristic: AttributeSelector,
        completion: (@Sendable (Result<[UInt8], CentralFailure>) -> Void)? = nil
    ) -> CentralRequest {
        configure(characteristic, bits: 0, completion)
    }

    private func configure(
        _ characteristic: AttributeSelector, bits: UInt8,
        _ completion: (@Sendable (Result<[UInt8], CentralFailure>) -> Void)?
    ) -> CentralRequest {
        ask(completion) { database in
            database.handle(characteristic, descriptor: nil).map { .configure(characteristic: $0 - 1, bits: bits) }
        }
    }

    /// Ends the link, or the wait for one. What was asked and is not answered fails.
    public func disconnect() {
        let now = stage.seconds
        stage.decide { [key, number] in $0.air.leave(key, number: number, now: now) }
    }

    /// It goes out of range in the midst of everything: it hears nothing more, what it asked fails, and the server notices
    /// only that many seconds later.
    public func vanish(noticedAfter delay: TimeInterval = 2) {
        let now = stage.seconds
        let requests = contents.withLock { contents in
            contents.state = .disconnected
            defer { contents.requests = [:] }
            return contents.requests.sorted { $0.key < $1.key }.map(\.value)
        }
        stage.decide { [key, number] simulation in
            simulation.daemon.unconfirming.insert(key.address)
            simulation.air.vanish(key, number: number, noticedAfter: max(0, delay), now: now)
        }
        for request in requests { stage.loop.post { request.settle(.failure(.disconnected)) } }
    }

    private func ask(
        _ completion: (@Sendable (Result<[UInt8], CentralFailure>) -> Void)?,
        _ kind: (LocalDatabase) -> AttributeRequest.Kind?
    ) -> CentralRequest {
        let request = CentralRequest(completion)
        let now = stage.seconds
        guard let kind = stage.look({ $0.daemon.databases[adapter].flatMap(kind) }) else {
            return finish(request, .failure(state == .connected ? .notFound : .disconnected))
        }
        let id = contents.withLock { contents -> UInt64? in
            guard contents.state == .connected else { return nil }
            contents.number += 1
            contents.requests[contents.number] = request
            return contents.number
        }
        guard let id else { return finish(request, .failure(.disconnected)) }
        stage.decide { [key, number] in
            $0.air.ask(AttributeRequest(id: id, kind: kind), by: key, number: number, now: now)
        }
        if case .write(_, _, _, .command) = kind {
            contents.withLock { $0.requests[id] = nil }
            return finish(request, .success([]))
        }
        return request
    }

    private func finish(
        _ request: CentralRequest, _ result: Result<[UInt8], CentralFailure>
    ) -> CentralRequest {
        stage.loop.post { request.settle(result) }
        return request
    }

    // MARK: Hearing

    /// On the simulator's loop.
    func take(_ news: CentralNews, seconds: TimeInterval) {
        // One that has vanished hears nothing more.
        guard state != .disconnected else { return }
        switch news {
        case .connected: contents.withLock { $0.state = .connected }
        case .notReached, .disconnected:
            let requests = contents.withLock { contents in
                contents.state = .disconnected
                defer { contents.requests = [:] }
                return contents.requests.sorted { $0.key < $1.key }.map(\.value)
            }
            for request in requests { request.settle(.failure(.disconnected)) }
        case .answered(let id, let result):
            let request = contents.withLock { $0.requests.removeValue(forKey: id) }
            switch result {
            case .bytes(let bytes): request?.settle(.success(bytes))
            case .error(let code): request?.settle(.failure(.attribute(code)))
            }
        case .value(let handle, let characteristic, let bytes, let isIndication):
            contents.withLock { contents in
                contents.values.append(
                    CentralValue(
                        characteristic: characteristic, handle: handle, bytes: bytes, isIndication: isIndication,
                        seconds: seconds))
            }
        }
    }
}

/// Something that a central has asked for.
public final class CentralRequest: Sendable {
    private let held: Locked<Result<[UInt8], CentralFailure>?>
    private let completion: (@Sendable (Result<[UInt8], CentralFailure>) -> Void)?

    init(_ completion: (@Sendable (Result<[UInt8], CentralFailure>) -> Void)?) {
        held = Locked(nil)
        self.completion = completion
    }

    /// What it came to; nil while it is under way. A write that succeeded has no bytes.
    public var result: Result<[UInt8], CentralFailure>? { held.withLock { $0 } }

    /// The bytes of a read that succeeded.
    public var bytes: [UInt8]? {
        guard case .success(let bytes)? = result else { return nil }
        return bytes
    }

    /// What went wrong; nil while it is under way, and when nothing did.
    public var failure: CentralFailure? {
        guard case .failure(let failure)? = result else { return nil }
        return failure
    }

    func settle(_ result: Result<[UInt8], CentralFailure>) {
        let isFirst = held.withLock { held in
            guard held == nil else { return false }
            held = result
            return true
        }
        if isFirst { completion?(result) }
    }
}
