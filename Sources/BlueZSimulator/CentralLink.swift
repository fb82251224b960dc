public import Foundation
import BlueCapFutures
import BlueCapReactor

extension Simulator {
    /// Connects a central to an adapter: 50 ms after the adapter advertises something that takes connections. The central
    /// has a device's object on the serving side, as every central has.
    ///
    /// - Parameters:
    ///   - central: the central; a link that a central with its address has to this adapter ends.
    ///   - index: the adapter's number.
    /// - Returns: the link, not yet up.
    @discardableResult
    public func connect(_ central: VirtualCentral, to index: Int = 0) -> CentralLink {
        let end = CentralEnd.virtual(stage.decide { $0.daemon.core.nextNumber() })
        let link = CentralLink(central, adapter: index, end: end, stage: stage)
        stage.wire.withLock { $0.centrals[end] = link }
        stage.decide { $0.linkLayer.connect(central, to: index, link.end) }
        return link
    }
}

extension Stage {
    /// Passes on what a central receives. On the loop.
    func send(to end: CentralEnd, _ news: CentralNews) {
        guard let link = wire.withLock({ $0.centrals[end] }) else { return }
        link.take(news, seconds: seconds)
        if link.state == .disconnected { wire.withLock { $0.centrals[end] = nil } }
    }
}

/// A central's connection to an adapter that serves, made by ``Simulator/connect(_:to:)``: its requests, and the values that
/// it receives.
///
/// Everything may be called on any thread; it takes effect on the simulator's loop, in the order of the calls. The connection
/// ends with ``disconnect()``, with the simulator, or when the link ends; releasing this object does not end it.
public final class CentralLink: Sendable {
    /// The state of a link from a virtual central.
    public enum State: Hashable, Sendable {
        /// Waiting for the adapter to advertise.
        case connecting
        /// The link is up.
        case connected
        /// Ended, or never made. It is not tried again: call ``Simulator/connect(_:to:)`` again.
        case disconnected
    }

    private struct Contents {
        var state = State.connecting
        var values: [CentralValue] = []
        /// Those that have no result yet, by their numbers.
        var requests: [UInt64: CentralRequest] = [:]
        var number: UInt64 = 0

        /// Removes the requests for a pairing, or all because the connection ends, and returns them in their order.
        mutating func takeRequests(isEnding: Bool) -> [CentralRequest] {
            if isEnding { state = .disconnected }
            let taken = requests.filter { isEnding || $0.value.isPairing }.sorted { $0.key < $1.key }
            for (id, _) in taken { requests[id] = nil }
            return taken.map(\.value)
        }
    }

    /// The central at the other end, as it was passed to ``Simulator/connect(_:to:)``.
    public let central: VirtualCentral
    /// The number of the adapter that it is connected to.
    public let adapter: Int
    let end: CentralEnd
    private let stage: Stage
    private let contents = Locked(Contents())

    init(_ central: VirtualCentral, adapter: Int, end: CentralEnd, stage: Stage) {
        self.central = central
        self.adapter = adapter
        self.end = end
        self.stage = stage
    }

    /// The state now.
    public var state: State { contents.withLock { $0.state } }

    /// All notifications and indications so far, in their order.
    public var values: [CentralValue] { contents.withLock { $0.values } }

    /// The services that it would discover now: all of the adapter, BlueZ's own too.
    public var services: [ServedService] {
        stage.look { $0.daemon.server.applications.databases[adapter]?.services.map(ServedService.init) ?? [] }
    }

    // MARK: Requests

    /// Reads a characteristic, all of it, in as many packets as it takes; or one of its descriptors.
    ///
    /// - Parameters:
    ///   - characteristic: its UUID, or its handle if several have that UUID.
    ///   - descriptor: the UUID of a descriptor of it, such as `"2901"`.
    ///   - offset: the position in the value to begin at.
    ///   - completion: called once, on the simulator's loop.
    @discardableResult
    public func read(
        _ characteristic: AttributeSelector, descriptor: String? = nil, offset: Int = 0,
        completion: (@Sendable (Result<[UInt8], CentralLinkError>) -> Void)? = nil
    ) -> CentralRequest {
        request(.read(offset: offset), characteristic, descriptor, completion)
    }

    /// Writes a characteristic or one of its descriptors. What does not fit one packet is prepared and executed. A command
    /// succeeds at once, whether the server accepts it or not.
    @discardableResult
    public func write(
        _ bytes: [UInt8], to characteristic: AttributeSelector, descriptor: String? = nil, offset: Int = 0,
        type: VirtualWriteType = .request, completion: (@Sendable (Result<[UInt8], CentralLinkError>) -> Void)? = nil
    ) -> CentralRequest {
        request(.write(offset: offset, bytes: bytes, type: type), characteristic, descriptor, completion)
    }

    /// Subscribes to a characteristic's notifications, or to its indications.
    @discardableResult
    public func subscribe(
        to characteristic: AttributeSelector, indications: Bool = false,
        completion: (@Sendable (Result<[UInt8], CentralLinkError>) -> Void)? = nil
    ) -> CentralRequest {
        request(.configure(indications ? 2 : 1), characteristic, AttributeDatabase.configuration, completion)
    }

    /// Ends a subscription.
    @discardableResult
    public func unsubscribe(
        from characteristic: AttributeSelector,
        completion: (@Sendable (Result<[UInt8], CentralLinkError>) -> Void)? = nil
    ) -> CentralRequest {
        request(.configure(0), characteristic, AttributeDatabase.configuration, completion)
    }

    /// Encrypts the link: with the keys that it has of the adapter, or else with a pairing, for which the adapter asks an agent.
    @discardableResult
    public func pair(completion: (@Sendable (Result<[UInt8], CentralLinkError>) -> Void)? = nil) -> CentralRequest {
        let request = CentralRequest(isPairing: true, completion)
        if add(request) != nil { stage.decide { $0.linkLayer.pair(end) } }
        return request
    }

    /// The security of the link; `none` if it is not up.
    public var security: LinkSecurity { stage.look { $0.linkLayer.security.security(of: end) } }

    /// Ends the link, or the wait for one. Requests under way fail.
    public func disconnect() { stage.decide { $0.linkLayer.disconnect(end) } }

    /// Takes the central out of range: it receives nothing more, its requests fail, and the server notices
    /// only that many seconds later.
    public func vanish(noticedAfter delay: TimeInterval = 2) {
        let requests = contents.withLock { $0.takeRequests(isEnding: true) }
        stage.decide { simulation in
            let key = DeviceKey(adapter: adapter, address: central.address)
            simulation.daemon.server.links[key]?.central.confirmsIndications = false
            simulation.linkLayer.vanish(end, noticedAfter: max(0, delay))
        }
        for request in requests { settle(request, .failure(.disconnected)) }
    }

    private func request(
        _ kind: AttributeRequest.Kind, _ characteristic: AttributeSelector, _ descriptor: String?,
        _ completion: (@Sendable (Result<[UInt8], CentralLinkError>) -> Void)?
    ) -> CentralRequest {
        let request = CentralRequest(completion)
        guard let id = add(request) else { return request }
        let handle = stage.look {
            $0.daemon.server.applications.databases[adapter]?.handle(characteristic, descriptor: descriptor)
        }
        if let handle {
            let asked = AttributeRequest(id: id, handle: handle, kind: kind)
            stage.decide { $0.linkLayer.receive(asked, over: end) }
            guard asked.isCommand else { return request }
        }
        if let request = contents.withLock({ $0.requests.removeValue(forKey: id) }) {
            settle(request, handle == nil ? .failure(.notFound) : .success([]))
        }
        return request
    }

    /// Returns the number of a request; nil if it fails because there is no link.
    private func add(_ request: CentralRequest) -> UInt64? {
        let id = contents.withLock { contents -> UInt64? in
            guard contents.state == .connected else { return nil }
            contents.number += 1
            contents.requests[contents.number] = request
            return contents.number
        }
        if id == nil { settle(request, .failure(.disconnected)) }
        return id
    }

    private func settle(_ request: CentralRequest, _ result: Result<[UInt8], CentralLinkError>) {
        stage.loop.post { request.settle(result) }
    }

    /// On the simulator's loop.
    func take(_ news: CentralNews, seconds: TimeInterval) {
        // A central that has vanished receives nothing more.
        guard state != .disconnected else { return }
        switch news {
        case .connected: contents.withLock { $0.state = .connected }
        case .failed, .disconnected:
            settleAll(.failure(.disconnected), isEnding: true)
        case .response(let id, let result):
            let request = contents.withLock { $0.requests.removeValue(forKey: id) }
            switch result {
            case .bytes(let bytes): request?.settle(.success(bytes))
            case .error(let code): request?.settle(.failure(.attribute(code)))
            }
        case .security(.secured): settleAll(.success([]), isEnding: false)
        case .security(.failed(let failure)): settleAll(.failure(.pairing(failure)), isEnding: false)
        case .security(.asked), .security(.paired): break
        case .value(var value):
            // The server may have sent it before a response that had to come first.
            value.seconds = seconds
            contents.withLock { [value] in $0.values.append(value) }
        }
    }

    private func settleAll(_ result: Result<[UInt8], CentralLinkError>, isEnding: Bool) {
        for request in contents.withLock({ $0.takeRequests(isEnding: isEnding) }) { request.settle(result) }
    }
}

/// A request of a central.
public final class CentralRequest: Sendable {
    private let held = Locked<Result<[UInt8], CentralLinkError>?>(nil)
    private let completion: (@Sendable (Result<[UInt8], CentralLinkError>) -> Void)?
    let isPairing: Bool

    init(isPairing: Bool = false, _ completion: (@Sendable (Result<[UInt8], CentralLinkError>) -> Void)?) {
        self.isPairing = isPairing
        self.completion = completion
    }

    /// The result; nil while the request is under way. A write that succeeded has no bytes.
    public var result: Result<[UInt8], CentralLinkError>? { held.withLock { $0 } }

    /// The bytes of a read that succeeded.
    public var bytes: [UInt8]? { try? result?.get() }

    /// The failure; nil while the request is under way, and if it succeeded.
    public var failure: CentralLinkError? { if case .failure(let failure)? = result { failure } else { nil } }

    func settle(_ result: Result<[UInt8], CentralLinkError>) {
        held.withLock { $0 = result }
        completion?(result)
    }
}
