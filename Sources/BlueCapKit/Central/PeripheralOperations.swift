public import Foundation
public import Futures
public import GATT

/// The queue of a peripheral: single operations that wait for their turn, behind and before runs.
///
/// ```swift
/// for part in parts { peripheral.operations.write(part, to: control) }
/// peripheral.operations.read(status).onSuccess { status in print("after all of them:", status) }
/// ```
///
/// First in, first out, one at a time. Each is a ``Peripheral/run(timeout:cancelToken:_:)`` of one operation: it connects
/// where there is no link, and fails with what a run fails with. What is asked of the peripheral and its
/// characteristics directly keeps out of the queue.
public struct PeripheralOperations: Sendable {
    let peripheral: Peripheral

    /// How many operations and runs have not been settled: the first one, and those that wait.
    public var count: Int {
        peripheral.session.readState(of: peripheral.key) { $0.runCount } ?? 0
    }

    /// Fails them all with `CancellationError`: those that wait at once; the one that is at work is stopped.
    public func cancelAll() {
        peripheral.session.decide(peripheral.key) { $0.cancelRuns(.cancelled, into: &$1) }
    }

    /// Reads the value, however long it is.
    /// - Parameters:
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: In seconds, from its turn on; connecting and discovery count.
    public func read(_ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity) -> Future<Data> {
        peripheral.run(timeout: timeout) { try await $0.read(identifier) }
    }

    /// Reads the value as one of a type.
    public func read<T: CharacteristicCodable>(
        _ identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity
    ) -> Future<T> {
        peripheral.run(timeout: timeout) { try await $0.read(identifier) }
    }

    /// Writes bytes.
    /// - Parameters:
    ///   - data: At most as many bytes as ``Peripheral/maximumWriteValueLength(for:)`` says.
    ///   - identifier: The characteristic, by its UUID and that of its service.
    ///   - timeout: In seconds, from its turn on; connecting and discovery count.
    ///   - type: Whether the peripheral is to answer.
    @discardableResult
    public func write(
        _ data: Data, to identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        peripheral.run(timeout: timeout) { try await $0.write(data, to: identifier, type: type) }
    }

    /// Writes a value of a type that has a form on the air.
    @discardableResult
    public func write<T: CharacteristicCodable>(
        _ value: T, to identifier: CharacteristicIdentifier, timeout: TimeInterval = .infinity,
        type: CBCharacteristicWriteType = .withResponse
    ) -> Future<Void> {
        write(value.serialize(), to: identifier, timeout: timeout, type: type)
    }
}

extension Peripheral {
    /// The operations that wait for their turn on this peripheral.
    public var operations: PeripheralOperations { PeripheralOperations(peripheral: self) }
}
