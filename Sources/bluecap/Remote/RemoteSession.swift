import BlueCapKit
import Dispatch
import Foundation
import Logging
import Profiles

/// A command's time with one peripheral: finds it, connects, has the work done, and lets go of the link, whatever
/// happened to the work.
///
/// Everything waits in tasks: cancelling the one that runs it ends the search, the attempt or the work, and then lets go
/// as after success.
struct RemoteSession: Sendable {
    /// How long it may take to end a link; BlueZ takes two seconds.
    private static let farewell = 6.0

    /// What the work has to do with.
    struct Remote: Sendable {
        let peripheral: Peripheral
        /// What becomes of its connection, from the beginning.
        let events: Events
    }

    let request: RemoteRequest
    let progress: Progress
    let logger: Logger

    /// - Throws: ``ToolFailure``, or `CancellationError` where the task was cancelled before the work was done.
    func run<R: Sendable>(_ work: (Remote) async throws -> R) async throws -> R {
        let manager = CentralManager(profileManager: .ready, options: request.managerOptions)
        do {
            let result = try await use(manager, work)
            await progress.end()
            return result
        } catch {
            await progress.end()
            // Whatever a cancelled task fails with, that it was cancelled is why.
            if Task.isCancelled || error is CancellationError { throw CancellationError() }
            throw RemoteWording.failure(error)
        }
    }

    private func use<R: Sendable>(
        _ manager: CentralManager, _ work: (Remote) async throws -> R
    ) async throws -> R {
        let start = DispatchTime.now()
        await progress.stage("Waiting for Bluetooth …")
        try await RadioWait.untilUsable(manager.whenStateChanges(), isSimulated: request.busAddress != nil) {
            manager.standing
        }
        let peripheral = try await find(with: manager)
        // Somebody else's link is theirs to end.
        let wasConnected = manager.retrieveConnectedPeripherals(withServices: []).contains(peripheral)
        let spent = Double(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1e9
        await progress.stage("Connecting to \(peripheral.name) …")
        logger.info("connecting", metadata: ["address": "\(peripheral.address)"])
        let retries: UInt = request.isPersistent ? .max : 0
        let events: Events = peripheral.connect(
            timeoutRetries: retries, disconnectRetries: retries, connectionTimeout: max(1, request.timeout - spent))
        let result: Result<R, any Error>
        do {
            try await waitForLink(events, to: peripheral)
            result = .success(try await work(Remote(peripheral: peripheral, events: events)))
        } catch {
            result = .failure(error)
        }
        if !wasConnected { await letGo(of: peripheral, events) }
        return try result.get()
    }

    // MARK: The peripheral

    private enum Heard: Sendable {
        case sighted(Peripheral)
        case failed(any Error)
        case search(PeripheralSearch.Event, number: Int)
    }

    private func find(with manager: CentralManager) async throws -> Peripheral {
        await progress.stage("Looking for \(request.peripheral.text) …")
        var search = PeripheralSearch(for: request.peripheral, patience: request.timeout)
        var known: [BluetoothAddress: Peripheral] = [:]
        let (inputs, feed) = AsyncStream.makeStream(of: Heard.self)
        let token = CancelToken()
        // Who is connected does not advertise; and a name may come after the first sighting.
        for peripheral in manager.retrieveConnectedPeripherals(withServices: []) { feed.yield(.sighted(peripheral)) }
        let scan = manager.startScanning(options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
        scan.onSuccess(context: ImmediateContext(), cancelToken: token) { feed.yield(.sighted($0)) }
        scan.onFailure(context: ImmediateContext(), cancelToken: token) { feed.yield(.failed($0)) }
        defer {
            scan.cancel(token)
            manager.stopScanning()
        }
        post(.search(.timeIsOver, number: 0), to: feed, after: request.timeout)
        var waits = 0
        for await input in inputs {
            var effects: [PeripheralSearch.Effect] = []
            switch input {
            case .failed(let error): throw error
            case .sighted(let peripheral):
                known[peripheral.bluetoothAddress] = peripheral
                let name = peripheral.name == "Unknown" ? nil : peripheral.name
                effects = search.handle(.heard(.init(address: peripheral.bluetoothAddress, name: name)))
            case .search(.waited, let number) where number != waits: continue
            case .search(let event, _): effects = search.handle(event)
            }
            for effect in effects {
                switch effect {
                case .wait(let seconds):
                    waits += 1
                    post(.search(.waited, number: waits), to: feed, after: seconds)
                case .failed(let why): throw ToolFailure(why)
                case .found(let candidate):
                    if let peripheral = known[candidate.address] { return peripheral }
                }
            }
        }
        throw CancellationError()
    }

    private func post(_ input: Heard, to feed: AsyncStream<Heard>.Continuation, after seconds: Double) {
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { feed.yield(input) }
    }

    // MARK: The link

    typealias Events = FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>

    private func waitForLink(_ events: Events, to peripheral: Peripheral) async throws {
        for await outcome in events.outcomes {
            logger.info("connection", metadata: ["outcome": "\(outcome)"])
            switch try outcome.get().connectionEvent {
            case .connect: return
            case .timeout, .giveUp: throw PeripheralError.connectionTimeout
            case .disconnect: throw PeripheralError.disconnected
            case .forceDisconnect: throw PeripheralError.forcedDisconnect
            }
        }
        // The loop ends where the task was cancelled.
        throw CancellationError()
    }

    /// Waits until BlueZ has confirmed the link's end, also where the task is cancelled: who merely left would leave the
    /// peripheral connected, and mute for everybody else.
    private func letGo(of peripheral: Peripheral, _ events: Events) async {
        await progress.stage("Disconnecting …")
        logger.info("disconnecting", metadata: ["address": "\(peripheral.address)"])
        let farewell = Task.detached {
            peripheral.disconnect()
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    // What happened before comes first, and is passed over.
                    for await case .success((_, let event)) in events.outcomes where event == .forceDisconnect {
                        return
                    }
                }
                group.addTask { try? await Task.sleep(for: .seconds(Self.farewell)) }
                _ = await group.next()
                group.cancelAll()
            }
        }
        await farewell.value
    }
}
