import BlueZSimulator
import BlueCapFutures
import TestBasics
import XCTest

@testable import BlueCapKit
@testable import BlueCapBlueZ

/// A thousand random pairings of random managers and peripherals, with random faults.
///
/// Every future completes, a bond appears only with consent, nothing of a pairing remains, and no text contains a passkey.
final class PairingSoakTests: RandomTestCase {
    func testPairingsWithBlueZ566() { play(.v5_66, 1) }
    func testPairingsWithBlueZ572() { play(.v5_72, 2) }
    func testPairingsWithBlueZ582() { play(.v5_82, 3) }
    func testPairingsWithBlueZ587() { play(BlueZVersion(5, 87), 4) }

    /// - Parameter number: Selects the random numbers of a test: all tests have the same seed.
    private func play(_ bluez: BlueZVersion, _ number: Int) {
        var random = TestRandom(self)
        for _ in 0..<number { random = random.split() }
        let scenes = ProcessInfo.processInfo.environment["SOAK_ROUNDS"].flatMap(Int.init).map { $0 / 20 } ?? 50
        var successes: [String: Int] = [:]
        for number in 0..<scenes {
            let scene = PairingScene(bluez, random.split())
            for _ in 0..<5 where scene.problems.isEmpty { scene.playRound() }
            scene.end()
            successes.merge(scene.successes, uniquingKeysWith: +)
            guard scene.problems.isEmpty else {
                return XCTFail("scene \(number): \(scene.problems)\n\(scene.log.joined(separator: "\n"))")
            }
        }
        for kind in ["pair", "operation", "unpair"] {
            XCTAssertGreaterThan(
                successes[kind, default: 0], scenes / 10, "the faults leave nothing to test: \(successes)")
        }
    }
}

/// One simulated room with a few managers and peripherals.
// Unchecked: used on the loop's thread alone, which in virtual time is the test's.
private final class PairingScene: @unchecked Sendable {
    /// A manager of the application, and what has happened to it in the present round.
    private final class Member {
        let name: String
        var manager: CentralManager?
        var peripherals: [Peripheral] = []
        /// The policies that it has had in the round.
        var policies: [PairingPolicy] = []

        init(_ name: String) { self.name = name }
    }

    /// What allows a bond of one peripheral in the present round.
    private struct Consent {
        var wasBonded = false
        /// The application has confirmed a request, entered the passkey, or displayed one.
        var isConfirmed = false
        /// A manager with that policy has begun a pairing or an operation that needs one, or accepts those of others.
        var isWantedByJustWorks = false
        /// The managers with that policy of which the application has requested `pair()` or `repair()`, without a refusal of a
        /// question of that manager since. An operation needs an answer as well.
        var isRequestedWithAsk: Set<String> = []
        /// A pairing was reported that this process has not requested.
        var isFromElsewhere = false
    }

    private static let service = ServiceIdentifier(uuid: "B001")
    private static let encrypted = CharacteristicIdentifier(uuid: "B002", service: service)
    private static let authenticated = CharacteristicIdentifier(uuid: "B003", service: service)
    private static let notifying = CharacteristicIdentifier(uuid: "B004", service: service)
    private static let shown = 918_273

    private let simulator: Simulator
    private var random: TestRandom
    private let addresses: [VirtualAddress]
    private var members: [Member] = []
    private var consents: [UUID: Consent] = [:]
    /// The peripherals that were bonded when the daemon last reported them.
    private var bonded: Set<UUID> = []
    private var hasForeignAgent = false
    /// Whether another program has called `Pair` in this round.
    private var hasForeignPair = false
    private var asked = 0
    /// What waits, by its number.
    private var waiting: [Int: String] = [:]
    private var plan: [(at: Double, what: String, perform: () -> Void)] = []
    private var requests: [PairingRequest] = []
    private var passkeys: Set<String> = ["\(shown)"]
    private var texts: [String] = []
    /// By the kind of the action.
    private(set) var successes: [String: Int] = [:]
    private(set) var log: [String] = []
    private(set) var problems: [String] = []

    init(_ bluez: BlueZVersion, _ random: TestRandom) {
        self.random = random
        simulator = Simulator.inProcess(room: .empty, bluez: bluez)
        addresses = ["C0:00:00:00:00:0A", "C0:00:00:00:00:0B"]
        for index in addresses.indices { simulator.add(lock(index)) }
        if chance(4) {
            hasForeignAgent = true
            let agent = VirtualAgent(pick(PairingCapability.allCases), user: user(), isDefault: chance(2))
            note("foreign agent \(agent.capability) \(agent.user) \(agent.isDefault)")
            simulator.add(agent)
        }
        for index in 0...self.random.below(3) { members.append(member("m\(index)")) }
    }

    // MARK: Random choices

    private func chance(_ bound: Int) -> Bool { random.below(bound) == 0 }
    private func pick<T>(_ choices: [T]) -> T { choices[random.below(choices.count)] }
    private func seconds(_ limit: Double) -> Double { Double.random(in: 0...limit, using: &random) }

    /// A third of the pairings and operations have no time limit.
    private func limit(_ seconds: Double) -> Double { chance(3) ? .infinity : seconds }

    private func user() -> VirtualUser {
        let delay = chance(2) ? 0 : seconds(28)
        let confirms: VirtualUser.Answer = pick([
            .accept(after: delay), .accept(after: delay), .reject(after: delay), .never,
        ])
        let entry = VirtualUser.Entry.displayed(after: delay)
        let passkey = pick([entry, entry, .wrong, .never])
        return VirtualUser(confirms: confirms, passkey: passkey, displays: Self.shown)
    }

    private func lock(_ index: Int) -> VirtualPeripheral {
        var security = VirtualSecurity(pick(PairingCapability.allCases))
        security.user = user()
        security.hasSecureConnections = !chance(4)
        security.isBondable = !chance(8)
        security.requestsSecurity = chance(8)
        security.confirmsJustWorksRepairing = chance(3)
        if chance(5) {
            security.privacy = VirtualPrivacy(identity: VirtualAddress(stringLiteral: "00:1B:DC:00:00:0\(index)"))
        }
        note("lock \(index) \(security)")
        return VirtualPeripheral(
            addresses[index], addressType: .random,
            advertisement: Advertisement(localName: "Lock \(index)", serviceUUIDs: ["B001"]), interval: 0.1,
            services: [
                VirtualService(
                    "B001",
                    characteristics: [
                        VirtualCharacteristic("B002", [.read, .write], value: [2], security: .encrypted),
                        VirtualCharacteristic("B003", [.read], value: [3], security: .authenticated),
                        VirtualCharacteristic("B004", [.notify], security: .encrypted),
                    ])
            ], security: security)
    }

    private func policy() -> PairingPolicy {
        var policy: PairingPolicy = pick([
            PairingPolicy.reject, .justWorks, .justWorks, .ask, .ask(pick(InputOutputCapability.allCases)),
        ])
        if chance(4) { policy.pairsOnDemand = false }
        if chance(6) { policy.acceptsIncoming = true }
        if chance(6) { policy.isDefaultAgent = true }
        if chance(4) { policy.answerTimeout = .seconds(5) }
        return policy
    }

    // MARK: Managers

    private func member(_ name: String) -> Member {
        let member = Member(name)
        let policy = policy()
        member.policies = [policy]
        note("\(name) \(policy)")
        let manager = try! CentralManager(configuration: .init(busAddress: simulator.address, pairingPolicy: policy))
        member.manager = manager
        manager.whenPairingIsRequested().onSuccess(context: ImmediateContext()) { [weak self] in
            self?.requested($0, name)
        }
        guard simulator.advance(until: { manager.poweredOn }, limit: 5) else {
            problems.append("\(name) is not powered on")
            return member
        }
        let found = Locked<[Peripheral]>([])
        manager.startScanning().onSuccess(context: ImmediateContext()) { peripheral in
            found.withLock { $0.append(peripheral) }
        }
        if !simulator.advance(until: { found.withLock { $0.count } >= addresses.count }, limit: 10) {
            problems.append("\(name) has not found the peripherals")
        }
        manager.stopScanning()
        member.peripherals = found.withLock { $0 }.sorted { $0.name < $1.name }
        for peripheral in member.peripherals {
            peripheral.whenPairingChanges().onSuccess(context: ImmediateContext()) { [weak self, weak peripheral] in
                guard let self, let peripheral else { return }
                changed($0, of: peripheral, name)
            }
        }
        return member
    }

    private func changed(_ change: PairingChange, of peripheral: Peripheral, _ name: String) {
        note("  \(name) \(peripheral.name): \(change)")
        keep(change)
        if change.isBonded, change.origin == .elsewhere { consents[peripheral.identifier]?.isFromElsewhere = true }
    }

    private func requested(_ request: PairingRequest, _ name: String) {
        note("  \(name) receives \(request)")
        requests.append(request)
        keep(request)
        guard case .peripheral(let peripheral) = request.peer else { return }
        let identifier = peripheral.identifier
        switch request.kind {
        case .displayPasskey(let passkey, _), .confirm(let passkey): passkeys.insert(passkey.digits)
        case .enterPasskey, .authorize: break
        }
        let accepts = !chance(3)
        // Rejected, a wrong passkey, or no answer.
        let refused = { [self] in _ = consents[identifier]?.isRequestedWithAsk.remove(name) }
        let answer = { [self] in
            note("  \(name) \(accepts ? "accepts" : "refuses") \(request) \(request.isOpen)")
            guard request.isOpen else { return }
            if accepts { consents[identifier]?.isConfirmed = true } else { refused() }
            switch request.kind {
            case .displayPasskey: if !accepts { request.reject() }
            case .enterPasskey: request.enter(accepts ? 918_273 : 111_111)
            case .confirm, .authorize: if accepts { request.confirm() } else { request.reject() }
            }
        }
        // A displayed passkey needs no answer.
        var isDisplay = false
        if case .displayPasskey = request.kind { isDisplay = true }
        if isDisplay, accepts { return answer() }
        switch isDisplay ? 2 : random.below(4) {
        case 0: refused()  // no answer
        case 1: plan.append((simulator.seconds + seconds(20), "answer", answer))
        default: answer()
        }
    }

    // MARK: Rounds

    func playRound() {
        note("round at \(simulator.seconds)")
        for member in members { member.policies = member.policies.suffix(1) }
        consents = [:]
        hasForeignPair = false
        for peripheral in members.flatMap(\.peripherals) {
            // A bond is not reported while the daemon is away.
            consents[peripheral.identifier, default: Consent()].wasBonded =
                isBonded(peripheral) || bonded.contains(peripheral.identifier)
        }
        for _ in 0...random.below(4) { planAction() }
        for _ in 0..<random.below(3) { planFault() }
        let limit = simulator.seconds + 400
        while true {
            if let next = plan.indices.min(by: { plan[$0].at < plan[$1].at }) {
                let event = plan.remove(at: next)
                simulator.advance(by: max(0, event.at - simulator.seconds))
                note("\(simulator.seconds) \(event.what)")
                event.perform()
                simulator.run()
                continue
            }
            calm()
            if simulator.advance(until: { waiting.isEmpty || !plan.isEmpty }, limit: limit - simulator.seconds) {
                if plan.isEmpty { break }
            } else {
                return problems.append("not complete: \(waiting.values.sorted())")
            }
        }
        simulator.advance(by: 45)
        checkBonds()
        checkRest()
    }

    private func calm() {
        simulator.simulateSlowReplies(by: 0)
        for address in addresses {
            simulator.simulateOutOfRange(false, of: address)
            simulator.simulatePairingFailures(0, of: address)
        }
    }

    private func at(_ limit: Double, _ what: String, _ perform: @escaping () -> Void) {
        plan.append((simulator.seconds + seconds(limit), what, perform))
    }

    private func planAction() {
        let member = pick(members)
        guard !member.peripherals.isEmpty else { return }
        let peripheral = pick(member.peripherals)
        let what = "\(member.name) \(peripheral.name)"
        switch random.below(16) {
        case 0...4:
            let (timeout, isTrusting) = (chance(4) ? seconds(30) : limit(60), chance(4))
            at(10, "\(what) pair") { [self] in
                want(peripheral, member, isRequest: true)
                wait(peripheral.pair(trusting: isTrusting, timeout: timeout), "\(what) pair")
            }
        case 5...7:
            let timeout = limit(30)
            operate(peripheral, member) {
                $0.read(Self.encrypted, timeout: timeout).map(context: ImmediateContext()) { _ in }
            }
        case 8:
            let timeout = limit(30)
            operate(peripheral, member) { $0.write(Data([1]), to: Self.encrypted, timeout: timeout) }
        case 9:
            let timeout = limit(30)
            operate(peripheral, member) {
                $0.read(Self.authenticated, timeout: timeout).map(context: ImmediateContext()) { _ in }
            }
        case 10:
            let (timeout, transport) = (limit(30), pick([NotificationTransport.signals, .socket]))
            operate(peripheral, member) {
                $0.characteristic(Self.notifying, timeout: timeout).flatMap(context: ImmediateContext()) {
                    characteristic -> Future<Void> in
                    characteristic.startNotifying(over: transport, timeout: timeout)
                }
            }
        case 11: at(15, "\(what) cancel") { peripheral.cancelPairing() }
        case 12:
            at(20, "\(what) unpair") { [self] in wait(peripheral.unpair(), "\(what) unpair") }
        case 13:
            at(10, "\(what) repair") { [self] in
                want(peripheral, member, isRequest: true)
                wait(peripheral.repair(), "\(what) repair")
            }
        case 14:
            at(15, "\(what) disconnect") { peripheral.disconnect() }
        default:
            let policy = policy()
            at(10, "\(member.name) policy \(policy)") { [self] in
                member.manager?.pairingPolicy = policy
                member.policies.append(policy)
                for peripheral in member.peripherals {
                    let what = "\(member.name) \(peripheral.name)"
                    let isWaiting = waiting.values.contains { $0.hasPrefix("\(what) ") }
                    if policy.acceptsIncoming == true { credit(policy, peripheral) }
                    guard isWaiting || isWanted(peripheral, member) else { continue }
                    let isRequest = waiting.values.contains {
                        $0.hasPrefix("\(what) pair ") || $0.hasPrefix("\(what) repair ")
                    }
                    want(peripheral, member, isRequest: isRequest)
                }
            }
        }
    }

    /// Connects, and performs an operation that needs an encrypted link.
    private func operate(
        _ peripheral: Peripheral, _ member: Member, _ operation: @escaping (Peripheral) -> Future<Void>
    ) {
        let what = "\(member.name) \(peripheral.name)"
        let delay = seconds(3)
        at(10, "\(what) connect") { [self] in
            peripheral.connect(timeoutRetries: 0, disconnectRetries: 1, connectionTimeout: 10)
            at(delay, "\(what) operation") { [self] in
                want(peripheral, member, isRequest: false)
                wait(operation(peripheral), "\(what) operation")
            }
        }
    }

    /// - Parameter isRequest: Whether the application requests a pairing, and not an operation that needs one.
    private func want(_ peripheral: Peripheral, _ member: Member, isRequest: Bool) {
        for policy in members.flatMap(\.policies) where policy.acceptsIncoming == true {
            credit(policy, peripheral)
        }
        for policy in member.policies where isRequest || policy.pairsOnDemand { credit(policy, peripheral) }
        let asks = member.policies.contains { $0.answers == .asks }
        if isRequest, asks { consents[peripheral.identifier]?.isRequestedWithAsk.insert(member.name) }
    }

    private func credit(_ policy: PairingPolicy, _ peripheral: Peripheral) {
        if policy.answers == .acceptsJustWorks { consents[peripheral.identifier]?.isWantedByJustWorks = true }
    }

    /// Whether the manager is pairing, or an operation waits that may pair.
    private func isWanted(_ peripheral: Peripheral, _ member: Member) -> Bool {
        member.manager?.session.use(of: peripheral.key) {
            !$0.state.pairing.isIdle || $0.state.attributes.isBusy || $0.state.attributes.isSecuring
        } ?? false
    }

    private func wait<T>(_ future: Future<T>, _ what: String) {
        asked += 1
        let number = asked
        waiting[number] = "\(what) at \(simulator.seconds)"
        future.onComplete(context: ImmediateContext()) { [weak self] result in
            guard let self else { return }
            waiting[number] = nil
            switch result {
            case .success:
                successes[what.split(separator: " ").last.map(String.init) ?? "", default: 0] += 1
                note("  \(what) succeeds at \(simulator.seconds)")
            case .failure(let error):
                note("  \(what) fails: \(error)")
                keep(error)
            }
        }
    }

    private func planFault() {
        let address = pick(addresses)
        let pause = seconds(8)
        switch random.below(13) {
        case 0, 1: at(20, "link loss \(address)") { [simulator] in simulator.simulateLinkLoss(of: address) }
        case 2, 3:
            let isClean = chance(2)
            at(20, "daemon ends") { [self] in
                if isClean { simulator.simulateDaemonStop() } else { simulator.simulateDaemonDeath() }
                at(pause, "daemon returns") { [simulator] in simulator.simulateDaemonReturn() }
            }
        case 4:
            at(20, "power off") { [self] in
                simulator.simulatePowerOff()
                at(pause, "power on") { [simulator] in simulator.simulatePowerOn() }
            }
        case 5, 6:
            let side: KeySide = chance(3) ? .adapter : .device
            at(20, "keys lost \(address) \(side)") { [simulator] in simulator.simulateKeyLoss(of: address, side: side) }
        case 7, 8:
            at(15, "foreign Pair \(address)") { [self] in
                hasForeignPair = true
                simulator.simulateForeignPairing(of: address)
            }
        case 9:
            let reason = pick([PairingFailure.pairingNotSupported, .confirmValueFailed, .timedOut])
            at(5, "pairing failure \(address)") { [simulator] in
                simulator.simulatePairingFailures(1, reason: reason, of: address)
            }
        case 10:
            at(10, "slow replies") { [simulator] in simulator.simulateSlowReplies(by: pause / 8) }
        case 11:
            at(10, "out of range \(address)") { [simulator] in simulator.simulateOutOfRange(of: address) }
        default:
            at(20, "another program calls") { [self] in
                simulator.simulateAgentCall(about: address) { [weak self] error in
                    if error == nil { self?.problems.append("a call of another program was answered") }
                }
            }
        }
    }

    // MARK: Checks

    private func isBonded(_ peripheral: Peripheral) -> Bool { peripheral.isBonded }

    private func checkBonds() {
        defer {
            if members.contains(where: { $0.manager?.poweredOn == true }) {
                bonded = Set(members.flatMap(\.peripherals).filter(isBonded).map(\.identifier))
            }
        }
        for (identifier, consent) in consents where !consent.wasBonded {
            let peripherals = members.flatMap(\.peripherals).filter { $0.identifier == identifier }
            guard peripherals.contains(where: isBonded) else { continue }
            let isAllowed =
                consent.isConfirmed || consent.isWantedByJustWorks || !consent.isRequestedWithAsk.isEmpty
                || consent.isFromElsewhere && (hasForeignAgent || hasForeignPair)
            if !isAllowed { problems.append("\(peripherals[0].name) is bonded without consent: \(consent)") }
        }
    }

    private func checkRest() {
        if requests.contains(where: { $0.isOpen || !$0.whenEnded().completed }) {
            problems.append("requests are open: \(requests.filter(\.isOpen))")
        }
        requests = []
        for text in texts where passkeys.contains(where: text.contains) { problems.append("a passkey in: \(text)") }
        texts = []
        for member in members {
            guard let session = member.manager?.session else { continue }
            session.core.withLock { core in
                if !core.completions.isEmpty { problems.append("\(member.name) has operations") }
                if !core.shell.orders.pending.isEmpty { problems.append("\(member.name) has orders") }
            }
            for peripheral in member.peripherals {
                let isBusy = session.use(of: peripheral.key) {
                    !$0.state.pairing.isIdle || $0.state.attributes.isBusy || $0.state.attributes.isSecuring
                }
                if isBusy == true { problems.append("\(member.name) is busy with \(peripheral.name)") }
            }
            let client = session.client
            checkEmpty(client.pairings, "waitingForAgent")
            checkEmpty(client.pairings, "sessions")
            for peripheral in member.peripherals {
                let isPairing = session.core.withLock { $0.state.peripherals.use(of: peripheral.key)?.pairing != nil }
                if isPairing { problems.append("\(member.name) has a call of Pair for \(peripheral.name)") }
            }
        }
    }

    /// Checks that these properties have no value.
    private func checkEmpty(_ owner: Any, _ names: String...) {
        for name in names {
            guard let child = Mirror(reflecting: owner).children.first(where: { $0.label == name }) else {
                problems.append("\(type(of: owner)) has no \(name)")
                continue
            }
            let value = child.value
            let mirror = Mirror(reflecting: value)
            let isEmpty =
                mirror.displayStyle == .optional || mirror.displayStyle == .dictionary
                    || mirror.displayStyle == .collection ? mirror.children.isEmpty : false
            if !isEmpty { problems.append("\(type(of: owner)).\(name) is not empty: \(value)") }
        }
    }

    func end() {
        let client = members.first?.manager?.session.client
        members = []
        simulator.advance(by: 10)
        guard problems.isEmpty else { return }
        if let client, client.pairings.agentState != .absent {
            problems.append("the agent stays: \(client.pairings.agentState)")
        }
    }

    // MARK: Notes

    private func note(_ text: String) { log.append(text) }

    /// Keeps what a log of the application would contain.
    private func keep(_ value: Any) {
        texts += ["\(value)", String(reflecting: value)]
    }
}
