public import Foundation
public import Futures
public import GATT

extension Characteristic {
    /// Reads the value from the peripheral, however long it is; ``dataValue`` has it when the future succeeds.
    ///
    /// - Parameter timeout: In seconds. When it is exceeded the future fails with ``CharacteristicError/readTimeout``.
    /// - Returns: This characteristic; or a failure: ``CharacteristicError/readNotSupported`` at once where its
    ///   properties lack `read`, ``CharacteristicError/readFailed(_:)`` where the peripheral refuses, with its ATT
    ///   error, ``CharacteristicError/invalidated``, ``PeripheralError/disconnected``.
    @discardableResult
    public func read(timeout: TimeInterval = .infinity) -> Future<Characteristic> {
        submit(.read(offset: 0), timeout: timeout, yielding: self)
    }

    /// The later form, which yields no characteristic.
    @_disfavoredOverload
    @discardableResult
    public func read(timeout: TimeInterval = .infinity) -> Future<Void> {
        submit(.read(offset: 0), timeout: timeout, yielding: ())
    }

    /// The same without a label, as the earliest document's example calls it.
    @_disfavoredOverload  // `characteristic.read` without a call is ``read(timeout:)``
    @discardableResult
    public func read(_ timeout: TimeInterval) -> Future<Characteristic> { read(timeout: timeout) }

    /// Reads the value from an offset on, and yields that part. ``dataValue`` stays as it is.
    ///
    /// Nobody needs it for long values, which ``read(timeout:)->Future<Characteristic>`` reads to their end; it saves time where
    /// the front of a value is known.
    /// - Parameters:
    ///   - offset: How many bytes to pass over, 1 to 512; 0 reads all.
    ///   - timeout: In seconds. When it is exceeded the future fails with ``CharacteristicError/readTimeout``.
    public func read(from offset: Int, timeout: TimeInterval = .infinity) -> Future<Data> {
        session.operation(on: peripheral.key) {
            if case .value(let data) = $0 { data } else { nil }
        } _: {
            $0.attributes.submit(.read(offset: max(0, offset)), on: id, $1, timeout: timeout, into: &$2)
        }
    }

    // MARK: The value

    /// The newest value: the one that was read or notified last. `nil` before there was one.
    public var dataValue: Data? { record { $0.value } }

    /// The newest value as people read it, by the characteristic's profile: hexadecimal under its name where the
    /// profile does not know better. `nil` where there is none, or where it is no value of that kind.
    public var stringValue: [String: String]? { dataValue.flatMap { profile.stringValue($0) } }

    /// All texts that a value can have, for a menu; empty when there are too many to choose from.
    public var stringValues: [String] { profile.stringValues }

    /// The newest value as one of a type. `nil` where there is none, or where its bytes spell none of that type.
    ///
    /// ```swift
    /// characteristic.read().onSuccess { characteristic in
    ///     let isEnabled: Enabled? = characteristic.value()
    /// }
    /// ```
    public func value<T: CharacteristicCodable>() -> T? { dataValue.flatMap { T.deserialize($0) } }
}

extension Characteristic {
    /// How a transfer makes sure, from time to time, that what it has written has gone out.
    public enum Fence: Hashable, Sendable {
        /// By reading this characteristic, else another one of its service; else by `writing`; else not at all.
        case automatic
        /// By reading this one, whatever its value. Choose one that is read without effect.
        case reading(Characteristic)
        /// By having the last part of each window written with response. With several ATT channels (BlueZ up to 5.66
        /// opens three, later ones one, unless `Channels` in `main.conf` says otherwise) that part may overtake others.
        case writing
        /// Not at all: all is queued in `bluetoothd`, which has no limit and tells of no progress.
        case none
    }

    /// Writes any number of bytes without response, in parts that fit into packets, as fast as the link takes them.
    ///
    /// A write without response is over when `bluetoothd` has queued it, so a program that writes many of them fills
    /// its memory, and knows nothing of what has gone out. This makes a cheap request after each window of writes, whose
    /// answer comes when they have; the window follows the link's speed. What is asked of this characteristic meanwhile
    /// waits for the end.
    ///
    /// ```swift
    /// characteristic.transfer(firmware).onSuccess { report in
    ///     print(report.bytes, "bytes at", report.bytesPerSecond, "bytes per second")
    /// }
    /// ```
    /// - Parameters:
    ///   - data: The bytes; where a part ends is up to the size of packets, see ``maximumWriteValueLength(for:)``.
    ///   - fence: What request is made after each window.
    ///   - timeout: For the whole, in seconds. When it is exceeded the future fails with
    ///     ``CharacteristicError/writeTimeout`` and nothing more is written.
    /// - Returns: How much and how fast; or a failure: ``CharacteristicError/writeNotSupported`` at once where its
    ///   properties lack `writeWithoutResponse`, and those of `write(data:)`. The link does not tell which parts of a
    ///   failed transfer have arrived.
    public func transfer(
        _ data: Data, fence: Fence = .automatic, timeout: TimeInterval = .infinity
    ) -> Future<TransferReport> {
        let internalFence: TransferFence =
            switch fence {
            case .automatic: .automatic
            case .reading(let characteristic): .reading(characteristic.id)
            case .writing: .writing
            case .none: .none
            }
        return session.operation(on: peripheral.key) {
            if case .transferred(let report) = $0 { report } else { nil }
        } _: {
            $0.attributes.submit(.transfer(data, internalFence), on: id, $1, timeout: timeout, into: &$2)
        }
    }
}
