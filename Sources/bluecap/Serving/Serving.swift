import BlueCapKit
import Foundation
import Logging

/// Serves and advertises: waits for the adapter, registers everything, follows what centrals do, and unregisters everything,
/// also if something fails or the task is cancelled.
struct Serving: Sendable {
    /// How long BlueZ may take to confirm the end of all advertisements, in seconds.
    private static let farewell = 3.0
    /// After how many seconds without a registration standard error says so.
    private static let quiet = 2.0

    let radio: Radio
    /// Empty for a command that only advertises.
    var services: [PeripheralModel.Service] = []
    /// Registered one after the other, each in an instance of its own.
    var advertisements: [AdvertisingPlan] = []
    /// In seconds; `nil` for no limit.
    var duration: Double?
    /// Whether the values that are sent are printed.
    var showsUpdates = false
    var pairing = PairingPlan()
    /// For how many seconds from the beginning centrals may pair; `nil` for no limit.
    var pairableTime: Double?
    let format: Format

    /// Whether the adapter accepts new bonds, and for how long, which BlueZ stores for all programs.
    private typealias Pairability = (isPairable: Bool, timeout: Duration?)

    private var console: Console { radio.console }

    /// How long BlueZ may take from the start until everything is registered, in seconds. A short duration leaves it two.
    private var limit: Double { min(Radio.patience, max(duration ?? .infinity, 2)) }

    /// Returns when the time is over, and if the task is cancelled after everything was registered.
    ///
    /// - Throws: ``ToolFailure``, or `CancellationError` if the task was cancelled before.
    func run() async throws {
        let clock = Stopwatch()
        let manager = try PeripheralManager(
            configuration: .init(
                busAddress: radio.busAddress, adapter: radio.adapter, pairingPolicy: pairing.policy,
                logger: radio.logger))
        var before: Pairability?
        try await console.run {
            await console.stage("Waiting for Bluetooth …")
            try await radio.waitUntilUsable(manager.whenStateChanges(), for: limit) { manager.standing }
            let result = await Result { try await serve(with: manager, clock, &before) }
            if case .failure(let error) = result, ServingFailure.isTimeout(error) {
                // A registration that BlueZ has not confirmed ends with this process's connection to the bus.
                manager.removeAllServices()
                _ = manager.stopAdvertising() as Future<Void>
            } else {
                await end(manager, before)
            }
            try result.get()
        } failure: {
            ServingFailure.failure($0, limit: limit)
        }
    }

    /// - Parameter before: Receives what the adapter had before ``pairableTime`` was set.
    private func serve(
        with manager: PeripheralManager, _ clock: Stopwatch, _ before: inout Pairability?
    ) async throws {
        let notice = Task {
            try await Task.sleep(for: .seconds(Self.quiet))
            await console.remark("bluetoothd has not registered everything yet …")
        }
        defer { notice.cancel() }
        try await ServingLoop.Events.run { loop in
            let machine = ServingMachine(services)
            loop.observe(manager.whenPairingIsRequested()) { [pairing] request in
                pairing.rejectUnseen(request)
                return .pairing(request, Date())
            }
            loop.observe(manager.whenPairingChanges()) { .paired($0.central, $0.change, Date()) }
            let characteristics = try await register(with: manager, machine, loop, clock)
            if let pairableTime {
                before = (manager.isPairable, manager.pairableTimeout)
                try await manager.setPairable(true, timeout: pairableTime).value
            }
            notice.cancel()
            loop.observe(manager.whenCentralsChange()) { .centrals($0, Date()) }
            loop.observe(manager.whenStateChanges()) { _ in .stateChanged }
            await console.clear()
            var serving = ServingLoop(
                serving: self, manager: manager, loop: loop, machine: machine, characteristics: characteristics)
            try await serving.run()
        }
    }

    /// Waits until BlueZ has confirmed that nothing is advertised.
    private func end(_ manager: PeripheralManager, _ before: Pairability?) async {
        await cleanUp(within: Self.farewell) {
            manager.removeAllServices()
            try? await manager.stopAdvertising(timeout: .seconds(Self.farewell))
            guard let before else { return }
            // The limit can be set only together with the permission.
            try? await manager.setPairable(true, timeout: before.timeout)
            if !before.isPairable { try? await manager.setPairable(false) }
        }
    }

    // MARK: Registering

    private func register(
        with manager: PeripheralManager, _ machine: ServingMachine, _ loop: ServingLoop.Events, _ clock: Stopwatch
    ) async throws -> [[MutableCharacteristic]] {
        let services = machine.services.map(Self.makeService)
        await console.stage("Registering the services …")
        // Started together, so that none waits for another; in the order in which centrals find them.
        let additions = services.map { manager.add($0, timeout: limit - clock.seconds) }
        for addition in additions { try await addition.value }
        let characteristics = services.map(\.characteristics)
        for key in machine.keys { observe(characteristics[key.service][key.characteristic], key, loop) }
        await console.stage("Starting to advertise …")
        for plan in advertisements {
            let advertisement = try await manager.startAdvertising(
                plan.data, timeout: .seconds(limit - clock.seconds))
            for note in advertisement.notes { await console.remark("\(note)") }
            advertisement.whenEnded().onSuccess(context: ImmediateContext()) { loop.send(.advertisingEnded($0)) }
            if let change = plan.change { loop.send(.changeIsDue(advertisement, change), after: change.every) }
        }
        return characteristics
    }

    private static func makeService(_ model: PeripheralModel.Service) -> MutableService {
        let service = MutableService(uuid: model.uuid, isPrimary: model.isPrimary)
        service.characteristics = model.characteristics.map { model in
            let characteristic = MutableCharacteristic(
                uuid: model.uuid, properties: model.properties, permissions: model.permissions, value: model.value)
            // Values that a slow link has not sent are old when the next central subscribes.
            characteristic.unsubscribedUpdatePolicy = .discard
            characteristic.descriptors = model.descriptors.map {
                MutableDescriptor(uuid: $0.uuid, value: $0.value, permissions: $0.permissions)
            }
            return characteristic
        }
        return service
    }

    private func observe(
        _ characteristic: MutableCharacteristic, _ key: ServingMachine.Key, _ loop: ServingLoop.Events
    ) {
        if characteristic.propertyEnabled(.read) {
            loop.observe(characteristic.startRespondingToReadRequests()) {
                .request(key, $0.request, $0.central, Date())
            }
        }
        if characteristic.propertyEnabled([.write, .writeWithoutResponse]) {
            loop.observe(characteristic.startRespondingToWriteRequests()) {
                .request(key, $0.request, $0.central, Date())
            }
        }
        if characteristic.propertyEnabled([.notify, .indicate]) {
            loop.observe(characteristic.whenSubscribersChange()) { .subscribers(key, $0, Date()) }
        }
    }
}

/// Follows a peripheral that is registered: requests, timers and the adapter's state pass, one by one, through a
/// ``ServingMachine``, and its effects are performed and printed here.
private struct ServingLoop {
    enum Event: Sendable {
        case request(ServingMachine.Key, ATTRequest, Central, Date)
        case centrals([Central], Date)
        case subscribers(ServingMachine.Key, [Central], Date)
        case due(ServingMachine.Key, round: Int)
        case stateChanged
        case changeIsDue(RunningAdvertisement, AdvertisingPlan.Change)
        case advertisingEnded(AdvertisingEnd)
        case pairing(PairingRequest, Date)
        case paired(Central, PairingChange, Date)
        case timeIsOver
    }

    typealias Events = EventLoop<Event>

    let serving: Serving
    let manager: PeripheralManager
    let loop: Events
    var machine: ServingMachine
    /// Those of each service.
    let characteristics: [[MutableCharacteristic]]
    let clock = Stopwatch()
    var summary = ServingEvent.Summary()
    var present: [ServingEvent.Who] = []
    var subscribers: [ServingMachine.Key: [ServingEvent.Who]] = [:]
    var state = RadioWatch()
    /// The centrals that are known to be paired.
    var paired: Set<Central> = []

    /// Returns when the time is over, and if the task is cancelled.
    mutating func run() async throws {
        try await report(
            .serving(services: serving.services, advertisements: serving.advertisements.map(\.data)))
        if let duration = serving.duration { loop.send(.timeIsOver, after: duration) }
        try await perform(machine.begin())
        await serving.radio.console.stage(status)
        for await event in loop {
            if case .timeIsOver = event { break }
            try await handle(event)
            await serving.radio.console.stage(status)
        }
        summary.seconds = clock.seconds
        try await report(.finished(summary))
    }

    // MARK: Events

    private mutating func handle(_ event: Event) async throws {
        switch event {
        case .due(let key, let round):
            try await perform(machine.due(key, round: round, at: clock.seconds))
        case .request(let key, let request, let central, let date):
            try await handle(request, of: key, ServingEvent.Who(central), date)
        case .centrals(let centrals, let date):
            let before = present
            present = centrals.map { ServingEvent.Who($0) }
            for who in present where !before.contains(who) { try await report(.connected(who), date) }
            for who in before where !present.contains(who) { try await report(.disconnected(who), date) }
        case .subscribers(let key, let centrals, let date):
            let now = centrals.map { ServingEvent.Who($0) }
            let before = subscribers.updateValue(now, forKey: key) ?? []
            for who in now where !before.contains(who) { try await report(.subscribed(attribute(key), who), date) }
            for who in before where !now.contains(who) { try await report(.unsubscribed(attribute(key), who), date) }
        case .stateChanged:
            let (present, explanation) = manager.standing
            if let remark = state.remark(present, explanation) { await serving.radio.console.remark(remark) }
        case .changeIsDue(let advertisement, let change):
            try advertisement.change(to: change.to(clock.seconds))
            loop.send(.changeIsDue(advertisement, change), after: change.every)
        case .advertisingEnded(let end):
            guard let why = ServingFailure.text(for: end) else { return }
            if serving.services.isEmpty { throw ToolFailure(why) }
            await serving.radio.console.remark(why)
        case .pairing(let request, let date):
            if case .central(let central) = request.peer {
                try await report(.pairingRequested(.init(request.kind), ServingEvent.Who(central)), date)
            }
            loop.perform { [pairing = serving.pairing, console = serving.radio.console] in
                do { try await pairing.answer(request, console) } catch { await console.remark("\(error)") }
            }
        case .paired(let central, let change, let date):
            if let error = change.error {
                try await report(.pairingFailed(ServingEvent.Who(central), ServingFailure.text(for: error)), date)
            } else if !change.isPaired {
                paired.remove(central)
            } else if paired.insert(central).inserted {
                try await report(.paired(ServingEvent.Who(central), isBonded: change.isBonded), date)
            }
        case .timeIsOver: break
        }
    }

    private mutating func handle(
        _ request: ATTRequest, of key: ServingMachine.Key, _ who: ServingEvent.Who, _ date: Date
    ) async throws {
        let characteristic = characteristics[key.service][key.characteristic]
        guard let data = request.value else {
            characteristic.respondToRequest(request, withResult: .success)
            return try await report(.read(attribute(key), value(characteristic.value ?? Data(), of: key), who), date)
        }
        let (result, effects) = machine.written(data, to: key, at: clock.seconds)
        characteristic.respondToRequest(request, withResult: result)
        try await report(.written(attribute(key), value(data, of: key), who, result), date)
        try await perform(effects)
    }

    // MARK: Effects

    private mutating func perform(_ effects: [ServingMachine.Effect]) async throws {
        for effect in effects {
            switch effect {
            case .wake(let key, let round, let pause): loop.send(.due(key, round: round), after: pause)
            case .value(let key, let data): try await change(key, to: data)
            }
        }
    }

    /// Without subscribers the value is only stored: nothing is sent later.
    private mutating func change(_ key: ServingMachine.Key, to data: Data) async throws {
        let characteristic = characteristics[key.service][key.characteristic]
        guard characteristic.hasSubscribers else { return characteristic.value = data }
        do {
            try characteristic.update(withData: data)
        } catch {
            // The link carries less than the values need; the next value replaces this one.
            serving.radio.logger.debug("value left out", metadata: ["why": "\(error)"])
            return characteristic.value = data
        }
        guard serving.showsUpdates else { return summary.updates += 1 }
        try await report(.sent(attribute(key), value(data, of: key)))
    }

    private mutating func report(_ event: ServingEvent, _ date: Date = Date()) async throws {
        summary.count(event)
        if let remark = event.remark(serving.format) { await serving.radio.console.remark(remark) }
        if let line = event.line(serving.format, at: date) { try await serving.radio.console.write(line) }
    }

    /// What a terminal shows while nothing happens.
    private var status: String {
        guard !present.isEmpty else { return "No central is connected …" }
        let names = present.map(\.text).joined(separator: ", ")
        let sent = summary.updates > 0 ? ", \(Wording.count(summary.updates, "update")) sent" : ""
        return "\(names) \(present.count == 1 ? "is" : "are") connected\(sent) …"
    }

    private func value(_ data: Data, of key: ServingMachine.Key) -> AttributeValue {
        AttributeValue(data, profile: machine[key].profile)
    }

    private func attribute(_ key: ServingMachine.Key) -> ServingEvent.Attribute {
        let characteristic = machine[key]
        return .init(
            service: serving.services[key.service].uuid, uuid: characteristic.uuid, name: characteristic.name)
    }
}

/// What went wrong with a served peripheral, for people at a command line, without the names of the library's functions.
enum ServingFailure {
    /// - Parameter limit: How long BlueZ had to register everything, in seconds.
    static func failure(_ error: any Error, limit: Double) -> ToolFailure {
        switch error {
        case _ where isTimeout(error):
            return ToolFailure(
                "bluetoothd did not answer within \(Wording.number(limit)) s: it may hang.",
                "`systemctl restart bluetooth` restarts it, and `journalctl -u bluetooth` shows its log.")
        case let error as PeripheralManagerError:
            var failure = ToolFailure(text(for: error))
            switch error {
            case .notPoweredOn, .advertisingNotSupported, .servicesNotSupported: failure.status = ToolFailure.noAdapter
            default: break
            }
            return failure
        default: return ToolFailure(ToolFailure.text(of: error))
        }
    }

    /// Whether BlueZ has not confirmed a registration in time.
    static func isTimeout(_ error: any Error) -> Bool {
        switch error {
        case PeripheralManagerError.serviceTimeout, PeripheralManagerError.startAdvertisingTimeout: true
        default: false
        }
    }

    static func text(for error: PeripheralManagerError) -> String {
        switch error {
        case .advertisementTooLong(.localName, let excess):
            "The name is \(Wording.count(excess, "byte")) too long for an advertisement: use at most 29 bytes of UTF-8."
        case .advertisementTooLong(let field, let excess):
            "The advertisement is \(Wording.count(excess, "byte")) too long for its 31: "
                + (field == .serviceUUIDs
                    ? "advertise fewer services, above all of long UUIDs." : "shorten its \(field), or omit something.")
        case .notPoweredOn:
            "Bluetooth was switched off, or the adapter was removed, before everything was registered: try again."
        case .tooManyAdvertisements(let count):
            (count > 0
                ? "The adapter sends \(count) advertisements already, which is its limit: "
                : "The adapter sends as many advertisements already as it can: ")
                + "end one of them, of this program or another."
        default: error.description
        }
    }

    /// Why a central did not pair, in a few words.
    fileprivate static func text(for error: PairingError) -> String {
        switch error {
        case .rejected(by: .application), .rejected(by: .policy): "rejected here"
        case .rejected: "rejected"
        case .timedOut: "not answered in time"
        case .linkLost, .cancelled: "cancelled, or another passkey"
        default: error.description
        }
    }

    /// Why an advertisement has ended; `nil` if the command has ended it.
    fileprivate static func text(for end: AdvertisingEnd) -> String? {
        switch end {
        case .stopped, .notStarted, .managerEnded: nil
        case .timedOut: "The advertisement's time is over."
        case .refused(let failure): "bluetoothd no longer advertises (\(failure))."
        }
    }
}
