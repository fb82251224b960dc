public import BlueCapKit
public import Foundation

/// The events that a manager reported during a test. Any thread may write; a test waits for entries, never for time.
public final class Journal: @unchecked Sendable {
    // Unchecked because `entries` is touched under `condition`'s lock alone.
    private let condition = NSCondition()
    private var entries = Entries()

    public struct Entries {
        public var states: [ManagerState] = []
        public var sightings: [Peripheral] = []
        public var failures: [any Error] = []
        public var expired: [Peripheral] = []
        /// Values of notifications; nil where some may be missing.
        public var values: [Data?] = []
        public var completions = 0
        public var serviceChanges = 0
        public var connectionEvents: [ConnectionEvent] = []
        /// The subscribers at each change, each with its identifier.
        public var subscribersByName: [[String]] = []
        /// How many subscribers there are, at each change.
        public var subscribers: [Int] { subscribersByName.map(\.count) }
        public var beacons: [Beacon] = []
        public var pairingRequests: [PairingRequest] = []
        public var pairingChanges: [PairingChange] = []
        /// The centrals that sent requests.
        public var mtus: [Int?] = []

        public func sightings(of address: String) -> [Peripheral] { sightings.filter { $0.address == address } }
        public func sightings(named name: String) -> [Peripheral] { sightings.filter { $0.name == name } }
        public var centralErrors: [CentralManagerError] { failures.compactMap { $0 as? CentralManagerError } }
    }

    public init() {}

    /// Writes an entry and wakes the waiting threads.
    public func write(_ change: (inout Entries) -> Void) {
        condition.withLock {
            change(&entries)
            condition.broadcast()
        }
    }

    public func read<R>(_ body: (Entries) -> R) -> R { condition.withLock { body(entries) } }

    public var states: [ManagerState] { read(\.states) }
    public var sightings: [Peripheral] { read(\.sightings) }
    public var failures: [CentralManagerError] { read(\.centralErrors) }
    public var expired: [Peripheral] { read(\.expired) }
    public var connectionEvents: [ConnectionEvent] { read(\.connectionEvents) }
    public var peripheralErrors: [PeripheralError] { read { $0.failures.compactMap { $0 as? PeripheralError } } }
    public var values: [Data?] { read(\.values) }

    /// Waits for an entry that makes `condition` true; false when `limit` seconds brought none.
    public func wait(limit: TimeInterval, until isReached: (Entries) -> Bool) -> Bool {
        let deadline = Date(timeIntervalSinceNow: limit)
        return condition.withLock {
            while !isReached(entries) {
                guard condition.wait(until: deadline) else { return isReached(entries) }
            }
            return true
        }
    }

    // MARK: Watching

    /// Writes down each state of the manager.
    public func watchStates(of manager: CentralManager) {
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { state in
            self.write { $0.states.append(state) }
        }
    }

    public func watchStates(of manager: PeripheralManager) {
        manager.whenStateChanges().onSuccess(context: ImmediateContext()) { state in
            self.write { $0.states.append(state) }
        }
    }

    /// Writes down each sighting and each failure.
    public func watch(_ scan: FutureStream<Peripheral>) {
        scan.onComplete(context: ImmediateContext()) { result in
            self.write { entries in
                switch result {
                case .success(let peripheral): entries.sightings.append(peripheral)
                case .failure(let error): entries.failures.append(error)
                }
            }
        }
    }

    /// Writes down each event of a connection and each failure.
    public func watch(_ connection: FutureStream<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>) {
        connection.onComplete(context: ImmediateContext()) { result in
            self.write { entries in
                switch result {
                case .success(let event): entries.connectionEvents.append(event.connectionEvent)
                case .failure(let error): entries.failures.append(error)
                }
            }
        }
    }

    /// Writes down each peripheral that expires.
    public func watchExpiries(of manager: CentralManager) {
        manager.whenPeripheralsExpire().onSuccess(context: ImmediateContext()) { peripheral in
            self.write { $0.expired.append(peripheral) }
        }
    }

    /// Writes down each value, and each gap.
    public func watch(_ notifications: FutureStream<(characteristic: Characteristic, data: Data?)>) {
        notifications.onComplete(context: ImmediateContext()) { result in
            self.write { entries in
                switch result {
                case .success(let (_, data)): entries.values.append(data)
                case .failure(let error): entries.failures.append(error)
                }
            }
        }
    }

    /// Writes down each request about a pairing.
    public func watch(_ requests: FutureStream<PairingRequest>) {
        requests.onSuccess(context: ImmediateContext()) { request in
            self.write { $0.pairingRequests.append(request) }
        }
    }

    /// Writes down each change of a pairing.
    public func watch(_ changes: FutureStream<PairingChange>) {
        changes.onSuccess(context: ImmediateContext()) { change in self.write { $0.pairingChanges.append(change) } }
    }

    /// Counts the changes of a peripheral's services.
    public func watchServices(of peripheral: Peripheral) {
        peripheral.whenServicesChange().onSuccess(context: ImmediateContext()) { _ in
            self.write { $0.serviceChanges += 1 }
        }
    }

    /// Counts the completion of a future.
    public func watch<T: Sendable>(_ future: Future<T>) {
        future.onComplete(context: ImmediateContext()) { _ in self.write { $0.completions += 1 } }
    }
}
