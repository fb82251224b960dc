public import BlueCapKit
import BlueZSimulator
public import Foundation
import XCTest

/// A virtual central as one of those that a peripheral is tested with. It pairs only when the test says so.
public final class VirtualStageCentral: PairingCentral, StagePlayer {
    private let stage: SimulatedStage
    public let journal = Journal()
    public let limit: TimeInterval = 60
    private var security = VirtualSecurity()
    private var link: CentralLink?
    private var pairing: CentralRequest?

    public var ground: any ScanStage { stage }
    public var keepsSubscriptions: Bool { true }

    public init(on stage: SimulatedStage) { self.stage = stage }

    public func setUser(_ user: StagePeer) { security = VirtualSecurity(user) }

    private func connected() throws -> CentralLink { try XCTUnwrap(link) }

    private func result(of request: CentralRequest) throws -> Result<[UInt8], CentralLinkError> {
        expect("the response") { _ in request.result != nil }
        return try XCTUnwrap(request.result)
    }

    private func answer(to request: CentralRequest) throws -> StageAnswer {
        switch try result(of: request) {
        case .success(let bytes): return .value(bytes)
        case .failure(.attribute(let code)): return .refused(code)
        case .failure(let failure): throw failure
        }
    }

    // MARK: Links

    /// With keys, the link is encrypted at once.
    public func connect(to name: String, advertising service: String) throws {
        let link = stage.simulator.connect(
            VirtualCentral("C0:FF:EE:00:CE:01", name: "Phone", security: security),
            to: stage.simulator.adapters.count < 2 ? 0 : 1)
        self.link = link
        expect("the link") { _ in link.state == .connected }
        _ = stage.wait(journal, limit: 0.5) { _ in link.security > .none }
    }

    public func disconnect() throws {
        let link = try connected()
        link.disconnect()
        expect("the end of the link") { _ in link.state == .disconnected }
        _ = stage.wait(journal, limit: 1) { _ in false }
    }

    public func awaitLoss() throws {
        let link = try connected()
        expect("the end of the link") { _ in link.state == .disconnected }
    }

    // MARK: Pairings

    public func beginPairing(with name: String, advertising service: String) throws {
        try connect(to: name, advertising: service)
        pairing = try connected().pair()
    }

    public func displayedPasskey() -> Passkey { 4711 }
    public func enter(_ passkey: Passkey) {}

    public func endPairing() throws -> Bool {
        guard case .success = try result(of: XCTUnwrap(pairing)) else { return false }
        return true
    }

    // MARK: Values

    public func table() throws -> [StageRow] {
        try connected().services.flatMap { service in
            service.characteristics.map { characteristic in
                StageRow(
                    service.uuid.lowercased(), characteristic.uuid.lowercased(),
                    Set(characteristic.flags.map(\.rawValue)),
                    Set(characteristic.descriptors.map { $0.uuid.lowercased() }))
            }
        }
    }

    public func read(_ uuid: String) throws -> StageAnswer { try answer(to: connected().read(.uuid(uuid))) }

    public func isRefused(reading uuid: String) throws -> Bool {
        if case .failure = try result(of: connected().read(.uuid(uuid))) { true } else { false }
    }

    public func readDescriptor(_ descriptor: String, of uuid: String) throws -> [UInt8] {
        try result(of: connected().read(.uuid(uuid), descriptor: descriptor)).get()
    }

    @discardableResult
    public func write(_ bytes: [UInt8], to uuid: String, withResponse: Bool) throws -> StageAnswer {
        try answer(to: connected().write(bytes, to: .uuid(uuid), type: withResponse ? .request : .command))
    }

    public func subscribe(to uuid: String) throws {
        _ = try result(of: connected().subscribe(to: .uuid(uuid))).get()
    }

    public func unsubscribe(from uuid: String) throws {
        _ = try result(of: connected().unsubscribe(from: .uuid(uuid))).get()
    }

    public func values(of uuid: String, count: Int) throws -> [[UInt8]] {
        let link = try connected()
        func values() -> [[UInt8]] { link.values.filter { $0.characteristic.lowercased() == uuid }.map(\.bytes) }
        expect("the values") { _ in values().count >= count }
        return values()
    }
}
