import BlueCapKit
import Dispatch
import Foundation
import Logging

/// Runs a peripheral: what centrals ask for, what falls due and what happens to the radio goes, one by one, through a
/// `ServingMachine`, and what that decides is done here.
///
/// All waiting is for the next input; nobody else touches the state, which lives in `run`.
struct ServingSession: Sendable {
    private typealias Key = ServingMachine.Key
    private typealias Request = (request: any CBATTRequestInjectable, central: any CBCentralInjectable)

    private enum Input: Sendable {
        case request(Key, any CBATTRequestInjectable, any CBCentralInjectable, Date)
        case centrals([Central], Date)
        case subscribers(Key, [any CBCentralInjectable], Date)
        case due(Key, round: Int)
        case state(ManagerState)
        case advertisingEnded(AdvertisingEnd)
        case changeIsDue(RunningAdvertisement, AdvertisingPlan.Change)
        case timeIsOver
    }

    /// How long BlueZ may take to confirm that nothing is advertised any more, in seconds.
    private static let farewell = 3.0

    let request: ServingRequest
    let reporter: ServingReporter
    let progress: Progress
    let logger: Logger

    /// Ends well when its time is over, and where the task was cancelled while it served.
    ///
    /// - Throws: ``ToolFailure``, or `CancellationError` where the task was cancelled before.
    func run() async throws {
        let manager = PeripheralManager(options: request.managerOptions)
        do {
            await progress.stage("Waiting for Bluetooth …")
            try await RadioWait.untilUsable(manager.whenStateChanges(), isSimulated: request.busAddress != nil) {
                manager.stateExplanation
            }
            let result: Result<Void, any Error>
            do {
                result = .success(try await serve(with: manager))
            } catch {
                result = .failure(error)
            }
            await letGo(of: manager)
            try result.get()
        } catch {
            await progress.end()
            // Whatever a cancelled task fails with, that it was cancelled is why.
            if Task.isCancelled || error is CancellationError { throw CancellationError() }
            throw ServingWording.failure(error)
        }
    }

    // MARK: Beginning

    private func serve(with manager: PeripheralManager) async throws {
        let (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        let machine = ServingMachine(request.services)
        let services = makeServices(machine)
        await progress.stage("Registering the services …")
        // Asked for together, so that nobody waits for one after the other; in the order in which centrals find them.
        let additions = services.map { manager.add($0) }
        for addition in additions { try await addition.value }
        var table: [Key: MutableCharacteristic] = [:]
        for (number, service) in services.enumerated() {
            for (index, characteristic) in service.characteristics.enumerated() {
                let key = Key(service: number, characteristic: index)
                table[key] = characteristic
                watch(characteristic, key, feed)
            }
        }
        await progress.stage("Starting to advertise …")
        for plan in request.advertisements {
            let advertisement = try await manager.startAdvertising(plan.data).value
            for note in advertisement.notes { remark("\(note)") }
            advertisement.whenEnded().onSuccess(context: ImmediateContext()) { feed.yield(.advertisingEnded($0)) }
            if let change = plan.change { post(.changeIsDue(advertisement, change), to: feed, after: change.every) }
        }
        manager.whenCentralsChange().onSuccess(context: ImmediateContext()) { feed.yield(.centrals($0, Date())) }
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { feed.yield(.state($0)) }
        await progress.end()
        try await work(machine, inputs, feed, table) { manager.stateExplanation }
    }

    private func makeServices(_ machine: ServingMachine) -> [MutableService] {
        request.services.enumerated().map { number, model in
            let service = MutableService(uuid: model.uuid, isPrimary: model.isPrimary)
            service.characteristics = model.characteristics.enumerated().map { index, model in
                let characteristic = MutableCharacteristic(
                    uuid: model.uuid, properties: model.properties, permissions: model.permissions,
                    value: machine.value(Key(service: number, characteristic: index)))
                characteristic.descriptors = model.descriptors.map { MutableDescriptor(uuid: $0.uuid, value: $0.value) }
                return characteristic
            }
            return service
        }
    }

    private func watch(_ characteristic: MutableCharacteristic, _ key: Key, _ feed: AsyncStream<Input>.Continuation) {
        // Where they come in: each has the time at which it came, however long it waits to be printed.
        let hand: @Sendable (Request) -> Void = { feed.yield(.request(key, $0.request, $0.central, Date())) }
        if characteristic.propertyEnabled(.read) {
            characteristic.startRespondingToReadRequests().onSuccess(context: ImmediateContext()) { hand($0) }
        }
        if characteristic.propertyEnabled([.write, .writeWithoutResponse]) {
            characteristic.startRespondingToWriteRequests().onSuccess(context: ImmediateContext()) { hand($0) }
        }
        if characteristic.propertyEnabled([.notify, .indicate]) {
            characteristic.whenSubscribersChange().onSuccess(context: ImmediateContext()) {
                feed.yield(.subscribers(key, $0, Date()))
            }
        }
    }

    // MARK: Serving

    private func work(
        _ machine: ServingMachine, _ inputs: AsyncStream<Input>, _ feed: AsyncStream<Input>.Continuation,
        _ table: [Key: MutableCharacteristic], _ explanation: @Sendable () -> String
    ) async throws {
        let origin = DispatchTime.now().uptimeNanoseconds
        func seconds() -> Double { Double(DispatchTime.now().uptimeNanoseconds - origin) / 1e9 }
        var machine = machine
        var summary = ServingEvent.Summary()
        var present: [ServingEvent.Who] = []
        var subscribers: [Key: [ServingEvent.Who]] = [:]
        var isAway = false

        func report(_ event: ServingEvent, _ date: Date = Date()) throws {
            summary.count(event)
            if let remark = reporter.remark(for: event) { self.remark(remark) }
            try write(reporter.line(for: event, at: date))
        }
        func perform(_ effects: [ServingMachine.Effect]) throws {
            for effect in effects {
                switch effect {
                case .wake(let key, let round, let pause):
                    post(.due(key, round: round), to: feed, after: pause)
                case .value(let key, let data):
                    guard let characteristic = table[key] else { continue }
                    // A sensor measures for those who listen: nobody wants a thousand old values on arrival.
                    guard characteristic.hasSubscribers, send(data, over: characteristic) else {
                        characteristic.value = data
                        continue
                    }
                    let model = machine.characteristic(key)
                    if request.showsUpdates {
                        try report(.sent(attribute(key), AttributeValue(data, profile: model.profile)))
                    } else {
                        summary.updates += 1
                    }
                }
            }
        }

        if let duration = request.duration { post(.timeIsOver, to: feed, after: duration) }
        try report(
            .serving(
                services: request.services.map { .init(uuid: $0.uuid, name: $0.name) },
                advertisements: request.advertisements.map(\.data)))
        try perform(machine.begin())
        loop: for await input in inputs {
            switch input {
            case .due(let key, let round):
                try perform(machine.due(key, round: round, at: seconds()))
            case .request(let key, let asked, let central, let date):
                guard let characteristic = table[key] else { continue }
                let profile = machine.characteristic(key).profile
                guard let data = asked.value else {
                    characteristic.respondToRequest(asked, withResult: .success)
                    let value = AttributeValue(characteristic.value ?? Data(), profile: profile)
                    try report(.read(attribute(key), value, .init(central)), date)
                    continue
                }
                let (result, effects) = machine.written(data, to: key, at: seconds())
                characteristic.respondToRequest(asked, withResult: result)
                let value = AttributeValue(data, profile: profile)
                try report(.written(attribute(key), value, .init(central), result), date)
                try perform(effects)
            case .centrals(let centrals, let date):
                let now = centrals.map { ServingEvent.Who($0) }
                for who in now where !present.contains(who) { try report(.connected(who), date) }
                for who in present where !now.contains(who) { try report(.disconnected(who), date) }
                present = now
            case .subscribers(let key, let centrals, let date):
                let now = centrals.map { ServingEvent.Who($0) }
                let before = subscribers.updateValue(now, forKey: key) ?? []
                for who in now where !before.contains(who) { try report(.subscribed(attribute(key), who), date) }
                for who in before where !now.contains(who) { try report(.unsubscribed(attribute(key), who), date) }
            case .state(let state):
                logger.info("state", metadata: ["state": "\(state)"])
                guard state != .unknown, (state != .poweredOn) != isAway else { continue }
                isAway = state != .poweredOn
                remark(isAway ? "\(explanation()) It goes on when Bluetooth is back." : "Bluetooth is back.")
            case .advertisingEnded(let end):
                guard let why = ServingWording.text(for: end) else { continue }
                if request.services.isEmpty { throw ToolFailure(why) }
                remark(why)
            case .changeIsDue(let advertisement, let change):
                try advertisement.change(to: change.to(seconds()))
                post(.changeIsDue(advertisement, change), to: feed, after: change.every)
            case .timeIsOver: break loop
            }
        }
        summary.seconds = seconds()
        try report(.finished(summary))
    }

    private func send(_ data: Data, over characteristic: MutableCharacteristic) -> Bool {
        do {
            try characteristic.update(withData: data)
            return true
        } catch {
            // A link that carries less than what is measured: the next value tells more than this one.
            logger.debug("value left out", metadata: ["why": "\(error)"])
            return false
        }
    }

    private func attribute(_ key: Key) -> ServingEvent.Attribute {
        let service = request.services[key.service]
        let characteristic = service.characteristics[key.characteristic]
        return .init(service: service.uuid, uuid: characteristic.uuid, name: characteristic.name)
    }

    // MARK: Ending

    /// Waits until BlueZ has confirmed that nothing is advertised any more, also where the task is cancelled.
    private func letGo(of manager: PeripheralManager) async {
        let ending = Task.detached {
            manager.removeAllServices()
            _ = try? await manager.stopAdvertising(timeout: Self.farewell).value
        }
        await ending.value
    }

    // MARK: Output

    private func remark(_ text: String) { Output.error.write("bluecap: \(DisplayText.safe(text))\n") }

    private func write(_ line: String?) throws {
        guard let line else { return }
        switch Output.standard.write(line + "\n") {
        case .written: break
        case .readerLeft: throw CancellationError()
        case .failed(let code): throw Output.Outcome.failed(code).failure ?? ToolFailure("Cannot write the output.")
        }
    }

    private func post(_ input: Input, to feed: AsyncStream<Input>.Continuation, after seconds: Double) {
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { feed.yield(input) }
    }
}
