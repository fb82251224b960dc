public import Foundation
public import BlueCapFutures
public import BlueCapGATT

/// The queue of a peripheral: single operations, which are executed in one sequence with runs.
///
/// ```swift
/// for part in parts { peripheral.operations.write(part, to: control) }
/// peripheral.operations.read(status).onSuccess { status in print("after all of them:", status) }
/// ```
///
/// Operations are executed one at a time, first in, first out. Each operation is a ``Peripheral/run(timeout:_:)`` of its own: it
/// connects if there is no link, and fails with the errors of a run. A time limit begins when the turn of the operation comes,
/// and includes connecting and discovery. Operations that are called on the peripheral and its characteristics directly are not
/// part of the queue.
public struct PeripheralOperations: Sendable {
    let peripheral: Peripheral

    /// How many operations and runs have not completed, including the one that is being executed.
    public var count: Int {
        peripheral.session.use(of: peripheral.key) { $0.state.runCount } ?? 0
    }

    /// Cancels all operations with `CancellationError`. Those that wait fail at once; the one that is being executed is
    /// stopped.
    public func cancelAll() {
        peripheral.session.decide(peripheral.key) { $0.cancelRuns(.cancelled, into: &$1) }
    }

    /// Reads the whole value.
    public func read(_ identifier: CharacteristicIdentifier, timeout: Duration? = nil) -> Future<Data> {
        peripheral.run(timeout: timeout.seconds) { try await $0.read(identifier) }
    }

    /// Reads the value as a value of a type.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: Duration? = nil
    ) -> Future<T> {
        peripheral.run(timeout: timeout.seconds) { try await $0.read(identifier) }
    }

    /// Writes bytes, at most ``Peripheral/maximumWriteValueLength(for:)``.
    @discardableResult
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        peripheral.run(timeout: timeout.seconds) { try await $0.write(data, to: identifier, type: type) }
    }

    /// Writes a value of a type that can be serialized.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: Duration? = nil,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        write(value.serialize(), to: identifier, timeout: timeout, type: type)
    }
}

extension Peripheral {
    /// The queue of operations on this peripheral.
    public var operations: PeripheralOperations { PeripheralOperations(peripheral: self) }
}
