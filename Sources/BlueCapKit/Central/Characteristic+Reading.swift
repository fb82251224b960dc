public import Foundation
public import BlueCapFutures
public import BlueCapGATT

extension Characteristic {
    /// Variant of ``read(timeout:)->Data`` that returns a future of this characteristic, with the time limit in seconds.
    /// When the future succeeds, ``dataValue`` contains the value.
    @discardableResult
    public func read(timeout: TimeInterval = .infinity) -> Future<Characteristic> {
        submit(.read(offset: 0), timeout, yielding: self)
    }

    /// Variant of ``read(from:timeout:)->Data`` that returns a future, with the time limit in
    /// seconds.
    public func read(from offset: Int, timeout: TimeInterval = .infinity) -> Future<Data> {
        submit(.read(offset: max(0, offset)), timeout, converting: \.value)
    }

    // MARK: The value

    /// The value that was read or notified last; `nil` if there was none yet.
    public var dataValue: Data? { session.value(of: id, peripheral.key) }

    /// The newest value as readable text, converted by the characteristic's profile.
    ///
    /// If the profile defines no conversion, the text is the value in hexadecimal under the characteristic's name. It
    /// is `nil` if there is no value, or if the value is not valid for the profile.
    public var stringValue: [String: String]? { dataValue.flatMap { profile.stringValue($0) } }

    /// All texts that a value can have, for a menu; empty if there are too many to choose from.
    public var stringValues: [String] { profile.stringValues }

    /// Returns the newest value as a value of a type; `nil` if there is none, or if its bytes are not a valid value of
    /// that type.
    ///
    /// ```swift
    /// let isEnabled: Enabled? = characteristic.value()
    /// ```
    public func value<T: CharacteristicCodable>() -> T? { dataValue.flatMap { T.deserialize($0) } }
}

extension Characteristic {
    /// A request that a transfer makes at intervals, which confirms that the parts written before it have been sent.
    public enum Fence: Hashable, Sendable {
        /// Reads this characteristic, or else another one of its service. If neither is readable, uses `writing`, and
        /// if that is not possible, `none`.
        case automatic
        /// Reads the given characteristic and ignores its value. Choose one whose reading has no side effect.
        case reading(Characteristic)
        /// Writes the last part of each window with response. If the link has several ATT channels (BlueZ up to 5.66
        /// opens three, later versions one, unless `Channels` in `main.conf` says otherwise), that part may overtake
        /// others.
        case writing
        /// Makes no request. All parts are queued in `bluetoothd`, which has no limit and reports no progress.
        case none
    }

    /// Variant of ``transfer(_:fence:timeout:)->TransferReport`` that returns a future, with the time limit in seconds.
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
        return submit(
            .transfer(data, internalFence), timeout,
            converting: { if case .transferred(let report) = $0 { report } else { nil } })
    }
}
