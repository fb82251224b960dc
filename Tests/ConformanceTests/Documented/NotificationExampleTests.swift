import BlueCapKit
import BlueZSimulator
import XCTest

private enum AppError: Error {
    case characteristicNotFound
    case unlikely
}

private typealias ApplicationError = AppError

/// The documents' value.
private enum Enabled: UInt8, RawDeserializable {
    case No = 0
    case Yes = 1
    public static let uuid = "F000AA12-0451-4000-B000-000000000000"
}

/// The examples of notifications in the three documents: a sensor with a switch that notifies.
final class NotificationExampleTests: DocumentedCase, @unchecked Sendable {
    private let enabledUUID = CBUUID(string: Enabled.uuid)

    private func characteristic() throws -> Characteristic {
        var sensor = Sensor.peripheral
        sensor.services[0].characteristics[1].flags.insert(.notify)
        return try connectedCharacteristic(enabledUUID, of: sensor)
    }

    /// The sensor notifies `Yes`.
    private func notify() {
        settle()
        simulator.notify(Sensor.address, characteristic: AttributeSelector(enabledUUID), value: [1])
    }

    private var subscriptions: [String] {
        simulator.subscriptions(to: AttributeSelector(enabledUUID), at: Sensor.address)
    }

    /// The earliest document's: `flatMap`, `let` and the call of `value` mended.
    func testReceivingAsInTheEarliestDocument() throws {
        let characteristicsDiscoveredFuture = Future(value: try characteristic().peripheral)
        let (serviceUUID, enabledUUID) = (Sensor.serviceUUID, self.enabledUUID)

        let subscribeCharacteristicFuture = characteristicsDiscoveredFuture.flatMap {
            peripheral -> Future<Characteristic> in
            if let service = peripheral.service(serviceUUID), let characteristic = service.characteristic(enabledUUID) {
                return characteristic.startNotifying()
            } else {
                let promise = Promise<Characteristic>()
                promise.failure(ApplicationError.characteristicNotFound)
                return promise.future
            }
        }

        subscribeCharacteristicFuture.onSuccess { characteristic in
            self.seen.note("subscribed")
        }
        subscribeCharacteristicFuture.onFailure { error in
            self.seen.note("\(error)")
        }

        let updateCharacteristicFuture = subscribeCharacteristicFuture.flatMap {
            characteristic -> FutureStream<Characteristic> in
            return characteristic.receiveNotificationUpdates()
        }
        updateCharacteristicFuture.onSuccess { characteristic in
            if let value: Enabled = characteristic.value() {
                self.seen.note("\(value)")
            }
        }
        updateCharacteristicFuture.onFailure { error in
            self.seen.note("\(error)")
        }

        eventually("the subscription") { seen.texts == ["subscribed"] }
        notify()
        eventually("the value") { seen.texts == ["subscribed", "Yes"] }
    }

    /// The earliest document's, with its `let` mended.
    func testStoppingAsInTheEarliestDocument() throws {
        let peripheral = try outcome(characteristic().startNotifying()).peripheral
        let (serviceUUID, enabledUUID) = (Sensor.serviceUUID, self.enabledUUID)

        if let service = peripheral.service(serviceUUID), let characteristic = service.characteristic(enabledUUID) {

            // stop receiving updates
            characteristic.stopNotificationUpdates()

            // unsubscribe to notifications
            characteristic.stopNotifying()
        }

        eventually("the end") { subscriptions.isEmpty }
    }

    /// The middle document's first.
    func testReceivingFromAConnectedCharacteristicAsInTheMiddleDocument() throws {
        let characteristic = try characteristic()

        let notificationFuture = characteristic.startNotifying().flatMap {
            characteristic -> FutureStream<(characteristic: Characteristic, data: Data?)> in
            characteristic.receiveNotificationUpdates(capacity: 10)
        }

        notificationFuture.onSuccess { (_, data) in self.seen.note("\(data.map(Array.init) ?? [])") }
        eventually("the subscription") { characteristic.isNotifying }
        notify()
        eventually("the value") { seen.texts == ["[1]"] }
    }

    /// The middle document's second, with one parameter for `service _`.
    func testReceivingInAChainAsInTheMiddleDocument() throws {
        let discovered = try characteristic()
        let discoveryFuture = Future(value: try XCTUnwrap(discovered.service))
        let enabledUUID = CBUUID(string: Enabled.uuid)

        let notificationFuture = discoveryFuture.flatMap { service -> Future<Characteristic> in
            guard let characteristic = service.characteristic(enabledUUID) else {
                throw AppError.characteristicNotFound
            }
            return characteristic.startNotifying()
        }.flatMap { characteristic -> FutureStream<(characteristic: Characteristic, data: Data?)> in
            characteristic.receiveNotificationUpdates(capacity: 10)
        }

        notificationFuture.onSuccess { (characteristic, data) in
            self.seen.note("\(characteristic.uuid == enabledUUID) \(data.map(Array.init) ?? [])")
        }
        eventually("the subscription") { discovered.isNotifying }
        notify()
        eventually("the value") { seen.texts == ["true [1]"] }
    }

    /// The latest document's, with its `let let` and its `return` mended.
    func testReceivingAsInTheLatestDocument() throws {
        let characteristic = try characteristic()

        let subscription: Future<Void> = characteristic.startNotifying()
        let notificationFuture = subscription.flatMap { [weak characteristic] () -> FutureStream<Data?> in
            guard let characteristic = characteristic else {
                throw AppError.unlikely
            }
            return characteristic.receiveNotificationUpdates(capacity: 10)
        }

        notificationFuture.onSuccess { data in self.seen.note("\(data.map(Array.init) ?? [])") }
        eventually("the subscription") { characteristic.isNotifying }
        notify()
        eventually("the value") { seen.texts == ["[1]"] }
    }

    /// The same in one expression, as it stands in the document.
    func testReceivingInOneExpressionAsInTheLatestDocument() throws {
        let characteristic = try characteristic()

        let notificationFuture = characteristic.startNotifying().flatMap {
            [weak characteristic] () -> FutureStream<Data?> in
            guard let characteristic = characteristic else {
                throw AppError.unlikely
            }
            return characteristic.receiveNotificationUpdates(capacity: 10)
        }

        notificationFuture.onSuccess { data in self.seen.note("\(data.map(Array.init) ?? [])") }
        eventually("the subscription") { characteristic.isNotifying }
        notify()
        eventually("the value") { seen.texts == ["[1]"] }
    }

    /// The middle and the latest document's.
    func testStoppingAsInTheLaterDocuments() throws {
        let characteristic = try outcome(characteristic().startNotifying())
        characteristic.stopNotificationUpdates()
        characteristic.stopNotifying()
        eventually("the end") { subscriptions.isEmpty }
        XCTAssertFalse(characteristic.isNotifying)
    }
}
