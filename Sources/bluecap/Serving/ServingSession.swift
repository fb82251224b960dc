import BlueCapKit
import Dispatch
import Foundation
import Logging

/// Runs a peripheral: waits for the radio, registers and advertises, has a ``ServingDesk`` deal with what happens, and takes
/// everything back, whatever happened.
struct ServingSession: Sendable {
    private typealias Key = ServingMachine.Key
    private typealias Feed = AsyncStream<ServingDesk.Input>.Continuation
    private typealias Request = (request: any CBATTRequestInjectable, central: any CBCentralInjectable)

    /// How long BlueZ may take to confirm that nothing is advertised any more, in seconds.
    private static let farewell = 3.0
    /// How long BlueZ may take until everything is registered, in seconds: at most, and however short the duration is.
    private static let patience = 10.0
    private static let leastPatience = 2.0
    /// After how many seconds without a registration standard error says so.
    private static let quiet = 2.0

    let request: ServingRequest
    let reporter: ServingReporter
    let progress: Progress
    let logger: Logger

    private var output: ServingOutput { ServingOutput(progress: progress) }

    /// Ends well when its time is over, and where the task was cancelled while it served.
    ///
    /// - Throws: ``ToolFailure``, or `CancellationError` where the task was cancelled before.
    func run() async throws {
        let deadline = ContinuousClock.now + .seconds(limit)
        let manager = PeripheralManager(options: request.managerOptions)
        do {
            await progress.stage("Waiting for Bluetooth …")
            try await RadioWait.untilUsable(
                manager.whenStateChanges(), isSimulated: request.busAddress != nil,
                for: limit
            ) {
                manager.standing
            }
            let result: Result<Void, any Error>
            do {
                result = .success(try await serve(with: manager, until: deadline))
            } catch {
                result = .failure(error)
            }
            // What BlueZ has not registered ends with this process's connection to the bus: nothing is waited for.
            if case .failure(let error) = result, ServingWording.isTimeout(error) {
                manager.removeAllServices()
                manager.stopAdvertising()
            } else {
                await letGo(of: manager)
            }
            try result.get()
        } catch {
            await progress.end()
            // Whatever a cancelled task fails with, that it was cancelled is why.
            if Task.isCancelled || error is CancellationError { throw CancellationError() }
            throw ServingWording.failure(error, limit: limit)
        }
    }

    // MARK: Beginning

    /// How long BlueZ may take from the start until everything is registered, in seconds.
    private var limit: Double { min(Self.patience, max(request.duration ?? .infinity, Self.leastPatience)) }

    private func serve(with manager: PeripheralManager, until deadline: ContinuousClock.Instant) async throws {
        let (inputs, feed) = AsyncStream.makeStream(of: ServingDesk.Input.self)
        let machine = ServingMachine(request.services)
        let notice = Task { [output] in
            try await Task.sleep(for: .seconds(Self.quiet))
            await output.remark("bluetoothd has not registered everything yet …")
        }
        defer { notice.cancel() }
        let table = try await register(with: manager, machine, feed, until: deadline)
        notice.cancel()
        manager.whenCentralsChange().onSuccess(context: ImmediateContext()) { feed.yield(.centrals($0, Date())) }
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { feed.yield(.state($0)) }
        await progress.end()
        var desk = ServingDesk(
            request: request, reporter: reporter, output: output, logger: logger, machine: machine, table: table,
            feed: feed, standing: { manager.standing })
        try await desk.run(inputs)
    }

    /// Registers the services and advertises.
    private func register(
        with manager: PeripheralManager, _ machine: ServingMachine, _ feed: Feed,
        until deadline: ContinuousClock.Instant
    ) async throws -> [Key: MutableCharacteristic] {
        let remaining: () -> Double = { (deadline - .now) / .seconds(1) }
        let services = makeServices(machine)
        await progress.stage("Registering the services …")
        // Asked for together, so that none waits for another; in the order in which centrals find them.
        let additions = services.map { manager.add($0, timeout: remaining()) }
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
            let advertisement = try await manager.startAdvertising(plan.data, timeout: remaining()).value
            for note in advertisement.notes { await output.remark("\(note)") }
            advertisement.whenEnded().onSuccess(context: ImmediateContext()) { feed.yield(.advertisingEnded($0)) }
            if let change = plan.change { feed.yield(.changeIsDue(advertisement, change), after: change.every) }
        }
        return table
    }

    private func makeServices(_ machine: ServingMachine) -> [MutableService] {
        request.services.enumerated().map { number, model in
            let service = MutableService(uuid: model.uuid, isPrimary: model.isPrimary)
            service.characteristics = model.characteristics.enumerated().map { index, model in
                let characteristic = MutableCharacteristic(
                    uuid: model.uuid, properties: model.properties, permissions: model.permissions,
                    value: machine.value(Key(service: number, characteristic: index)))
                // Values that a slow link has left over are old when the next central subscribes.
                characteristic.unsubscribedUpdatePolicy = .discard
                characteristic.descriptors = model.descriptors.map { MutableDescriptor(uuid: $0.uuid, value: $0.value) }
                return characteristic
            }
            return service
        }
    }

    private func watch(_ characteristic: MutableCharacteristic, _ key: Key, _ feed: Feed) {
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

    // MARK: Ending

    /// Waits until BlueZ has confirmed that nothing is advertised any more, also where the task is cancelled.
    private func letGo(of manager: PeripheralManager) async {
        let ending = Task.detached {
            manager.removeAllServices()
            _ = try? await manager.stopAdvertising(timeout: Self.farewell).value
        }
        await ending.value
    }
}
