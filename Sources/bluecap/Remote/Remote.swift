import BlueCapKit
import Foundation
import Logging
import Profiles

/// A peripheral that a command is connected to.
struct Remote: Sendable {
    typealias Events = FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>

    let peripheral: Peripheral
    /// The events of its connection, from the beginning.
    let events: Events
    /// In seconds, for each response.
    let timeout: Double
    let console: Console

    /// Discovers all attributes.
    func discover() async throws -> AttributeDirectory {
        try await AttributeDirectory(of: peripheral, timeout: timeout)
    }

    /// Discovers the characteristic that an argument names.
    ///
    /// - Throws: As ``AttributeArgument/find(in:usableFor:)``.
    func find(
        _ argument: AttributeArgument, usableFor wanted: CBCharacteristicProperties
    ) async throws -> (entry: AttributeTree.Characteristic, target: Characteristic) {
        let directory = try await discover()
        let entry = try argument.find(in: directory.tree, usableFor: wanted)
        guard let target = directory.characteristics[entry.handle] else { throw CharacteristicError.invalidated }
        return (entry, target)
    }
}

/// Finds a peripheral, connects to it, does a command's work with it, and ends the link, also if the work fails or its task is
/// cancelled.
struct RemoteSession: Sendable {
    /// How long the end of a link may take, in seconds; BlueZ takes two.
    private static let farewell = 6.0

    let radio: Radio
    let argument: PeripheralArgument
    /// In seconds: for finding and connecting together, and then for each response.
    let timeout: Double
    /// Whether a lost link is restored.
    var isPersistent = false
    let console: Console

    /// - Throws: ``ToolFailure``, or `CancellationError` if the task was cancelled before the work was done.
    func run(_ work: (Remote) async throws -> Void) async throws {
        try await console.run {
            try await use(CentralManager(profileManager: .ready, options: radio.centralOptions), work)
        } failure: {
            ToolFailure(RemoteFailure.text(for: $0))
        }
    }

    private func use(_ manager: CentralManager, _ work: (Remote) async throws -> Void) async throws {
        let clock = Stopwatch()
        await console.stage("Waiting for Bluetooth …")
        try await radio.waitUntilUsable(manager.whenStateChanges()) { manager.standing }
        let peripheral = try await find(with: manager)
        // A link of another program is not ended here, and a simulated bus ends together with the command.
        let keepsLink =
            radio.busAddress != nil || manager.retrieveConnectedPeripherals(withServices: []).contains(peripheral)
        await console.stage("Connecting to \(peripheral.name) …")
        radio.logger.info("connecting", metadata: ["address": "\(peripheral.address)"])
        let retries: UInt = isPersistent ? .max : 0
        let events: Remote.Events = peripheral.connect(
            timeoutRetries: retries, disconnectRetries: retries, connectionTimeout: max(1, timeout - clock.seconds))
        let result: Result<Void, any Error>
        do {
            try await waitForLink(events)
            result = .success(
                try await work(
                    Remote(peripheral: peripheral, events: events, timeout: timeout, console: console)))
        } catch {
            result = .failure(error)
        }
        if !keepsLink { await disconnect(peripheral, events) }
        try result.get()
    }

    // MARK: The peripheral

    private enum Input: Sendable {
        case sighted(Peripheral)
        case failed(any Error)
        /// The time of a wait is over, or (`nil`) that of the search.
        case timeIsOver(wait: Int?)
    }

    private func find(with manager: CentralManager) async throws -> Peripheral {
        await console.stage("Looking for \(argument.text) …")
        let (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        let token = CancelToken()
        // A connected peripheral does not advertise, and a name may arrive after the first sighting.
        for peripheral in manager.retrieveConnectedPeripherals(withServices: []) { feed.yield(.sighted(peripheral)) }
        let scan = manager.startScanning(options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
        scan.onSuccess(context: ImmediateContext(), cancelToken: token) { feed.yield(.sighted($0)) }
        scan.onFailure(context: ImmediateContext(), cancelToken: token) { feed.yield(.failed($0)) }
        defer {
            scan.cancel(token)
            manager.stopScanning()
        }
        return try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            group.yield(.timeIsOver(wait: nil), to: feed, after: timeout)
            var search = PeripheralSearch(for: argument, patience: timeout)
            var known: [BluetoothAddress: Peripheral] = [:]
            var waits = 0
            for await input in inputs {
                let effect: PeripheralSearch.Effect?
                switch input {
                case .failed(let error): throw error
                case .sighted(let peripheral):
                    let address = peripheral.bluetoothAddress
                    known[address] = peripheral
                    effect = search.discovered(.init(address: address, name: peripheral.knownName))
                // A timer that a later one has replaced.
                case .timeIsOver(let wait?) where wait != waits: continue
                case .timeIsOver: effect = search.decide()
                }
                switch effect {
                case nil: break
                case .wait(let seconds):
                    waits += 1
                    group.yield(.timeIsOver(wait: waits), to: feed, after: seconds)
                case .failed(let why): throw ToolFailure(why)
                case .found(let candidate):
                    if let peripheral = known[candidate.address] { return peripheral }
                }
            }
            throw CancellationError()
        }
    }

    // MARK: The link

    private func waitForLink(_ events: Remote.Events) async throws {
        for await outcome in events.outcomes {
            radio.logger.info("connection", metadata: ["outcome": "\(outcome)"])
            switch try outcome.get().connectionEvent {
            case .connect: return
            case .timeout, .giveUp: throw PeripheralError.connectionTimeout
            case .disconnect: throw PeripheralError.disconnected
            case .forceDisconnect: throw PeripheralError.forcedDisconnect
            }
        }
        // The loop ends if the task was cancelled.
        throw CancellationError()
    }

    /// Waits until BlueZ has confirmed the link's end. Without that, the next command would find a link that is about to end.
    private func disconnect(_ peripheral: Peripheral, _ events: Remote.Events) async {
        await console.stage("Disconnecting …")
        radio.logger.info("disconnecting", metadata: ["address": "\(peripheral.address)"])
        await cleanUp(within: Self.farewell) {
            peripheral.disconnect()
            // Earlier events come first, and are skipped.
            for await case .success((_, let event)) in events.outcomes where event == .forceDisconnect { return }
        }
    }
}

/// What went wrong with a peripheral, for people at a command line, without the names of the library's functions.
enum RemoteFailure {
    static func text(for error: any Error) -> String {
        switch error {
        case PeripheralError.disconnected: "The peripheral has ended the connection, or is out of range: try again."
        case PeripheralError.forcedDisconnect: "The connection was ended."
        case CharacteristicError.readNotSupported: "This characteristic cannot be read."
        case CharacteristicError.writeNotSupported: "This characteristic cannot be written in this way."
        case CharacteristicError.invalidated:
            "The peripheral has changed its services, and this characteristic no longer exists: try again."
        case CharacteristicError.valueTooLong(let count, let maximum):
            "The value has \(count) bytes, and at most \(maximum) can be written at once: write it in parts."
        case PeripheralError.serviceDiscoveryTimeout, ServiceError.characteristicDiscoveryTimeout:
            "The peripheral's services were not discovered in time: try again, or give it more time with --timeout."
        default: ToolFailure.text(of: error)
        }
    }

    /// The same in a few words, for the line of the attribute that could not be read.
    static func brief(_ error: any Error) -> String {
        switch error {
        case CharacteristicError.readFailed(let failure):
            failure.attError.map { "\($0)" } ?? (failure.message.isEmpty ? failure.name : failure.message)
        case CharacteristicError.readTimeout: "no response"
        case PeripheralError.disconnected: "link lost"
        default: text(for: error)
        }
    }
}
