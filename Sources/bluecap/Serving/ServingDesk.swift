import BlueCapKit
import Dispatch
import Foundation
import Logging

/// Where a peripheral that serves is dealt with: what centrals ask for, what falls due and what happens to the radio goes,
/// one by one, through a `ServingMachine`; what that decides is done and told here.
struct ServingDesk {
    enum Input: Sendable {
        case request(Key, any CBATTRequestInjectable, any CBCentralInjectable, Date)
        case centrals([Central], Date)
        case subscribers(Key, [any CBCentralInjectable], Date)
        case due(Key, round: Int)
        case state(ManagerState)
        case advertisingEnded(AdvertisingEnd)
        case changeIsDue(RunningAdvertisement, AdvertisingPlan.Change)
        case timeIsOver
    }

    typealias Key = ServingMachine.Key
    typealias Who = ServingEvent.Who

    let request: ServingRequest
    let reporter: ServingReporter
    let output: ServingOutput
    let logger: Logger
    private var machine: ServingMachine
    private let table: [Key: MutableCharacteristic]
    private let feed: AsyncStream<Input>.Continuation
    /// Why the manager's state is what it is.
    private let standing: () -> (state: ManagerState, explanation: String)

    private let origin = DispatchTime.now().uptimeNanoseconds
    private var summary = ServingEvent.Summary()
    private var present: [Who] = []
    private var subscribers: [Key: [Who]] = [:]
    private var isAway = false

    init(
        request: ServingRequest, reporter: ServingReporter, output: ServingOutput, logger: Logger,
        machine: ServingMachine, table: [Key: MutableCharacteristic], feed: AsyncStream<Input>.Continuation,
        standing: @escaping () -> (state: ManagerState, explanation: String)
    ) {
        (self.request, self.reporter, self.output, self.logger) = (request, reporter, output, logger)
        (self.machine, self.table, self.feed, self.standing) = (machine, table, feed, standing)
    }

    private var seconds: Double { Double(DispatchTime.now().uptimeNanoseconds - origin) / 1e9 }

    /// Ends well when the time is over, and where the task is cancelled.
    mutating func run(_ inputs: AsyncStream<Input>) async throws {
        if let duration = request.duration { feed.yield(.timeIsOver, after: duration) }
        try await report(
            .serving(
                services: request.services.map { .init(uuid: $0.uuid, name: $0.name) },
                advertisements: request.advertisements.map(\.data)))
        try await perform(machine.begin())
        await output.status(reporter.status(present: present, summary))
        for await input in inputs {
            if case .timeIsOver = input { break }
            try await handle(input)
            await output.status(reporter.status(present: present, summary))
        }
        summary.seconds = seconds
        try await report(.finished(summary))
    }

    // MARK: Inputs

    private mutating func handle(_ input: Input) async throws {
        switch input {
        case .due(let key, let round):
            try await perform(machine.due(key, round: round, at: seconds))
        case .request(let key, let request, let central, let date):
            guard let data = request.value else { return try await read(key, request, Who(central), date) }
            try await write(data, to: key, request, Who(central), date)
        case .centrals(let centrals, let date):
            let before = present
            present = centrals.map { Who($0) }
            for who in present where !before.contains(who) { try await report(.connected(who), date) }
            for who in before where !present.contains(who) { try await report(.disconnected(who), date) }
        case .subscribers(let key, let centrals, let date):
            let now = centrals.map { Who($0) }
            let before = subscribers.updateValue(now, forKey: key) ?? []
            for who in now where !before.contains(who) { try await report(.subscribed(attribute(key), who), date) }
            for who in before where !now.contains(who) { try await report(.unsubscribed(attribute(key), who), date) }
        case .state:
            // It may be another one already, and the explanation is of no other.
            let (state, explanation) = standing()
            logger.info("state", metadata: ["state": "\(state)"])
            guard state != .unknown, (state != .poweredOn) != isAway else { return }
            isAway = state != .poweredOn
            await output.remark(isAway ? "\(explanation) It goes on when Bluetooth is back." : "Bluetooth is back.")
        case .advertisingEnded(let end):
            guard let why = ServingWording.text(for: end) else { return }
            if request.services.isEmpty { throw ToolFailure(why) }
            await output.remark(why)
        case .changeIsDue(let advertisement, let change):
            try advertisement.change(to: change.to(seconds))
            feed.yield(.changeIsDue(advertisement, change), after: change.every)
        case .timeIsOver: break
        }
    }

    private mutating func read(
        _ key: Key, _ request: any CBATTRequestInjectable, _ who: Who, _ date: Date
    ) async throws {
        guard let characteristic = table[key] else { return }
        characteristic.respondToRequest(request, withResult: .success)
        let value = AttributeValue(characteristic.value ?? Data(), profile: machine.characteristic(key).profile)
        try await report(.read(attribute(key), value, who), date)
    }

    private mutating func write(
        _ data: Data, to key: Key, _ request: any CBATTRequestInjectable, _ who: Who, _ date: Date
    ) async throws {
        let (result, effects) = machine.written(data, to: key, at: seconds)
        table[key]?.respondToRequest(request, withResult: result)
        let value = AttributeValue(data, profile: machine.characteristic(key).profile)
        try await report(.written(attribute(key), value, who, result), date)
        try await perform(effects)
    }

    // MARK: Effects

    private mutating func perform(_ effects: [ServingMachine.Effect]) async throws {
        for effect in effects {
            switch effect {
            case .wake(let key, let round, let pause): feed.yield(.due(key, round: round), after: pause)
            case .value(let key, let data): try await change(key, to: data)
            }
        }
    }

    /// A sensor measures for those who listen: nobody wants a thousand old values on arrival.
    private mutating func change(_ key: Key, to data: Data) async throws {
        guard let characteristic = table[key] else { return }
        guard characteristic.hasSubscribers, send(data, over: characteristic) else {
            return characteristic.value = data
        }
        guard request.showsUpdates else { return summary.updates += 1 }
        let value = AttributeValue(data, profile: machine.characteristic(key).profile)
        try await report(.sent(attribute(key), value))
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

    private mutating func report(_ event: ServingEvent, _ date: Date = Date()) async throws {
        summary.count(event)
        if let remark = reporter.remark(for: event) { await output.remark(remark) }
        if let line = reporter.line(for: event, at: date) { try await output.write(line) }
    }

    private func attribute(_ key: Key) -> ServingEvent.Attribute {
        let service = request.services[key.service]
        let characteristic = service.characteristics[key.characteristic]
        return .init(service: service.uuid, uuid: characteristic.uuid, name: characteristic.name)
    }
}

extension AsyncStream<ServingDesk.Input>.Continuation {
    /// The same after so many seconds.
    func yield(_ input: ServingDesk.Input, after seconds: Double) {
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { self.yield(input) }
    }
}
