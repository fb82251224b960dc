public import BlueCapKit
public import BlueZSimulator
import BlueCapFutures

extension SimulatedStage: PairingStage {
    public func setPeer(_ peer: StagePeer, central: InputOutputCapability) {
        simulator.simulateKeyLoss(of: address)
        security = VirtualSecurity(peer)
        hasPrivateAddress = peer.isPrivate
    }

    public func passkeyOfPeer() -> Passkey { 4711 }
    public func enterAtPeer(_ passkey: Passkey) {}
    public func questionsToPeer() -> [String]? { nil }

    public func cutLink() { drop() }

    public func forgetKeys(of side: StageSide) {
        simulator.simulateKeyLoss(of: address, side: side == .central ? .adapter : .device)
    }

    public func addForeignAgent(_ answer: StagePeer.Answer) {
        simulator.add(VirtualAgent(.noInputNoOutput, user: VirtualUser(answer), isDefault: true))
    }

    public func pairByAnotherProgram() { simulator.simulateForeignPairing(of: address) }

    public func callAgents() -> [String?] {
        let journal = Journal()
        let errors = Locked<[String?]>([])
        simulator.simulateAgentCall(about: address) { error in
            errors.withLock { $0.append(error) }
            journal.write { $0.completions += 1 }
        }
        _ = wait(journal, limit: 10) { $0.completions > 0 }
        return errors.withLock { $0 }
    }

    public func isPairable() -> Bool { simulator.adapters.first?.isPairable ?? false }

    public func linkSecurity() -> LinkSecurity? { simulator.links.first?.security }
}

extension VirtualSecurity {
    /// The security of a simulated peripheral. Its passkey is constant.
    init(_ peer: StagePeer) {
        self.init(
            PairingCapability(rawValue: peer.capability.bluezName) ?? .noInputNoOutput, user: VirtualUser(peer.answer),
            privacy: peer.isPrivate ? VirtualPrivacy(identity: "00:1B:DC:00:00:01") : nil)
    }
}

extension VirtualUser {
    init(_ answer: StagePeer.Answer) {
        switch answer {
        case .accept: self.init(displays: 4711)
        case .acceptLate: self.init(confirms: .accept(after: 3), passkey: .displayed(after: 3), displays: 4711)
        case .reject: self.init(confirms: .reject, passkey: .never, displays: 4711)
        case .never: self.init(confirms: .never, passkey: .never, displays: 4711)
        case .wrongPasskey: self.init(passkey: .wrong, displays: 4711)
        }
    }
}
