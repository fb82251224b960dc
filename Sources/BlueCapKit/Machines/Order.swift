import BlueCapBlueZ
import Foundation
import BlueCapGATT

/// One action for the loop, decided by the state of a central manager.
///
/// All machines of the central role use this one type. A machine appends an order when it decides; the session executes
/// each order once, in the order of the decisions.
struct Order: Equatable {
    /// What an order refers to. `Orders` adds it, so that a machine does not store its own identity.
    struct Subject: Equatable, Sendable {
        /// Zero in orders about the manager.
        var peripheral = PeripheralKey(rawValue: 0)
        /// BlueZ's object of the peripheral at the time of the decision; `nil` if there was none.
        var device: ObjectKey?
        /// The subscribed characteristic, in orders of a subscription.
        var characteristic = AttributeID(rawValue: -1)
        /// BlueZ's name of that characteristic when it was last present. A subscription that began under this name is
        /// ended under it.
        var attribute: AttributeKey?

        func key(of handle: AttributeHandle) -> AttributeKey? { device.flatMap { AttributeKey($0, handle) } }
    }

    /// Identifies a timer together with the peripheral of the order.
    enum Timer: Hashable, Sendable {
        case scanTimeout(ScanNumber)
        case adapterGrace, expirySweep
        /// The pause of a transfer.
        case transfer(OperationID)
        /// The pause before an operation that BlueZ was too busy for is repeated.
        case retry(AttributeID)
        case discovery(ServiceDiscoveryMachine.Timer)
        case connection(ConnectionMachine.Timer)
        /// The search for a device that is to be paired.
        case search
        /// BlueZ is to encrypt a link with the keys of a bond.
        case encryption
    }

    /// The result of an operation that a caller waits for.
    enum Outcome: Equatable, Sendable {
        case done
        /// The value that a read returned.
        case value(Data)
        /// The attribute that a name refers to.
        case found(AttributeID)
        case transferred(TransferReport)
        case failed(PeripheralFailure)

        /// The value that a read returned; `nil` of other outcomes.
        var value: Data? { if case .value(let data) = self { data } else { nil } }
    }

    enum Action: Equatable {
        // MARK: Timers and results

        case startTimer(Timer, TimeInterval)
        case cancelTimer(Timer)
        /// Limits the time of an operation, in seconds, until it is settled.
        case limit(OperationID, TimeInterval)
        case settle(OperationID, Outcome)

        // MARK: The manager

        case announce(ManagerState)
        /// Adds this scan to the shared discovery, and reports the devices that BlueZ already receives.
        // Indirect, because a sighting is an order too and has to stay small.
        indirect case startScan(ScanNumber, ScanRequest)
        case discovered(PeripheralKey, ScanNumber)
        /// A sighting with data.
        indirect case sighted(PeripheralKey, ScanNumber, SightingData)
        /// Ends the discovery of a scan and finishes its stream, after this failure if there is one.
        case endScan(ScanNumber, CentralManagerError?)
        case expired(PeripheralKey)
        /// Makes the references to the objects of a peripheral weak that has left the list.
        case drop(PeripheralKey)

        // MARK: The connection

        /// `pausesScans`: the scans of this adapter pause for the first seconds of the attempt.
        case callConnect(ConnectionMachine.Attempt, pausesScans: Bool)
        /// Cancels the `Connect` that is under way or queued.
        case cancelConnect
        case callDisconnect
        /// Discovers until `stopSeeking`, so that BlueZ finds the device and keeps it.
        case seek
        case stopSeeking
        /// Makes a call to BlueZ about the device, which is replied to after all earlier calls, and reports the reply.
        case awaitReplies
        case report(ConnectionMachine.ConnectionNumber, ConnectionMachine.Report)
        case finishStream(ConnectionMachine.ConnectionNumber)
        /// The link can be used from here on.
        case linkWentUp
        /// No operation is possible from here on; those under way have failed.
        case linkWentDown(DisconnectReason)
        /// The application has ended its use of this peripheral.
        case forget
        /// The peripheral's object was released, and nothing is under way any more.
        case endUse

        // MARK: Pairing

        /// Asks the user whether the manager may pair for an operation.
        case askForConsent(PairingState.Attempt)
        /// Pairs, with a time limit in seconds. Connects if there is no link.
        case callPair(PairingState.Attempt, timeout: TimeInterval)
        /// Cancels the pairing; its reply follows.
        case cancelPairing
        /// Removes the device from BlueZ, with its bond.
        case removeDevice
        case setTrusted(Bool)
        /// Notes how many successive links have ended before they were encrypted.
        case noteShortLinks(Int)
        case reportPairing(PairingChange)
        /// Rejects the requests that the application has not answered, of all peripherals.
        case rejectRequests
        /// Rejects those about this peripheral, because the pairing was cancelled or needs no answer any more.
        case cancelRequests

        // MARK: Attributes

        /// Makes a call to BlueZ about the device, and reports the reply.
        case fence(link: UInt32)
        /// Reads the attributes that BlueZ has exported, and reports them.
        case readTable(link: UInt32)
        /// `limit`: the seconds for which BlueZ's reply is awaited.
        case read(OperationID, AttributeHandle, offset: Int, limit: TimeInterval)
        case write(OperationID, AttributeHandle, Data, CBCharacteristicWriteType, offset: Int, limit: TimeInterval)
        /// Makes the references to the objects of attributes weak that no longer exist.
        case release([AttributeID])
        /// The services differ from those known before on this connection.
        case servicesChanged

        // MARK: Subscriptions

        /// From here on, values are delivered to the streams. `afterGap`: a gap mark precedes the first of them.
        /// `isRepeated`: after a pause, since BlueZ has just refused the same.
        case subscribe(SubscriptionMachine.Call, NotificationTransport, afterGap: Bool, isRepeated: Bool)
        /// The subscription has begun.
        case subscribed(afterGap: Bool)
        case unsubscribe(SubscriptionMachine.Call)
        /// Delivers a failure to the streams, which continue.
        case deliver(PeripheralFailure)
        /// Finishes the streams, after this failure if there is one.
        case finishNotifications(PeripheralFailure?)

        // MARK: Runs

        /// Begins a run: it is first in the queue, and there is a link.
        case beginRun(OperationID)
        /// Ends the work of a run that is settled.
        case stopRun(OperationID)
    }

    let subject: Subject
    let action: Action
}

/// The orders that wait for the loop. Machines append to it; the session removes them in their order.
struct Orders {
    var pending: [Order] = []
    /// What the orders that are appended next refer to.
    var subject = Order.Subject()

    // What the machines that decide about the subject read.

    /// What BlueZ reports of the peripheral's device.
    var status = LinkStatus() { didSet { subject.device = status.device } }
    /// Whether there is a daemon, and an adapter with power. Without them there is no link either.
    var isUsable = false

    var count: Int { pending.count }

    mutating func append(_ action: Order.Action) { pending.append(Order(subject: subject, action: action)) }

    /// Removes and returns the orders from `index` on.
    mutating func take(from index: Int) -> [Order] {
        defer { pending.removeSubrange(index...) }
        return Array(pending[index...])
    }
}
