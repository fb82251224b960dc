public import BlueCapKit
public import Foundation
import BlueCapFutures
import BlueCapGATT

/// A central that uses this program's services.
///
/// It is the same object for one identifier as long as the program has a reference to it.
open class CBCentral: CBPeer {
    private let newest: Locked<Central>

    init(_ central: Central) {
        newest = Locked(central)
        super.init(identifier: central.identifier)
    }

    /// The largest number of bytes of an update for this central: its MTU less 3, and at most 512.
    open var maximumUpdateValueLength: Int { newest.withLock { $0 }.maximumUpdateValueLength }

    /// The same central in BlueCap's interface.
    public var blueCap: Central { newest.withLock { $0 } }

    func changed(to central: Central) {
        newest.replace(\.self, with: central)
    }
}

/// A read or a write of a central.
open class CBATTRequest: NSObject {
    /// The central that reads or writes.
    public let central: CBCentral
    /// The characteristic that is read or written.
    public let characteristic: CBCharacteristic
    /// The byte of the value at which the request begins. BlueZ joins the parts of a long value, so it is nearly
    /// always 0.
    public let offset: Int
    private let bytes: Locked<Data?>
    /// The same request in BlueCap's interface.
    public let blueCap: ATTRequest

    init(_ request: ATTRequest, of central: CBCentral, for characteristic: CBMutableCharacteristic) {
        self.central = central
        self.characteristic = characteristic
        offset = request.offset
        bytes = Locked(request.value)
        blueCap = request
    }

    var isRead: Bool { blueCap.value == nil }

    /// What the central writes; for a read, set it to what the central receives, from ``offset`` on.
    open var value: Data? {
        get { bytes.withLock { $0 } }
        set { bytes.withLock { $0 = newValue } }
    }
}

/// How often a central is asked to exchange packets; BlueZ leaves that to the central.
public enum CBPeripheralManagerConnectionLatency: Int, Sendable {
    /// The shortest latency, which uses the most energy.
    case low
    /// A latency between the other two.
    case medium
    /// The longest latency, which uses the least energy.
    case high
}
