import Foundation

/// An adapter and the address of a peripheral: the two ends of a link.
struct DeviceKey: Hashable, Sendable {
    var adapter: Int
    var address: VirtualAddress
}

/// What a host wants of the air.
enum AirOrder: Hashable, Sendable {
    case connect(DeviceKey)
    case cancelConnection(DeviceKey)
    case disconnect(DeviceKey)
    /// Read the table of services.
    case discover(DeviceKey)
    case request(DeviceKey, AttributeRequest)

    /// What an adapter sends from now on.
    case announce(HostAnnouncement)
    /// The adapter with that address is gone.
    case withdraw(VirtualAddress)
    /// The server's end of a link, given by its two ends, is let go.
    case hangUp(CentralEnd, DeviceKey)
    /// A server has answered what an adapter asked, after so many packets.
    case respond(DeviceKey, id: UInt64, AttributeResult, packets: Int)
    /// A server's value goes to an adapter.
    case deliver(DeviceKey, characteristic: UInt16, [UInt8])
    /// A server's services have changed.
    case tellServicesChanged(DeviceKey)
}

/// One request of the attribute protocol, or several that belong together.
struct AttributeRequest: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case read(handle: UInt16, offset: Int)
        case write(handle: UInt16, offset: Int, bytes: [UInt8], type: VirtualWriteType)
        /// A subscription, by the handle of the characteristic's declaration: 0 off, 1 notifications, 2 indications.
        case configure(characteristic: UInt16, bits: UInt8)
    }

    var id: UInt64
    var kind: Kind
}

/// What comes of it.
enum AirEvent: Hashable, Sendable {
    case linkUp(DeviceKey, VirtualLink)
    case linkFailed(DeviceKey)
    case linkDown(DeviceKey, LinkEndCause)
    case discovered(DeviceKey, [AttributeTable.Service], AirIdentity)
    /// The services have changed while the link is up; a new discovery is due.
    case servicesChanged(DeviceKey)
    /// To one request: its bytes, or an error code of the attribute protocol.
    case response(DeviceKey, id: UInt64, AttributeResult)
    /// A notification or an indication, by the handle of the characteristic's declaration.
    case value(DeviceKey, characteristic: UInt16, [UInt8])

    // At the end of an adapter that serves, by it and the central's address.
    case centralCame(DeviceKey, CentralIdentity)
    case centralLeft(DeviceKey, LinkEndCause)
    /// A central of the simulator's own found nobody in time.
    case centralNotReached(UInt64)
    case asked(DeviceKey, AttributeRequest)
    /// An adapter looks at the services of another, given by its number.
    case hostDiscovered(DeviceKey, host: Int)
}

/// What a peripheral says of itself once connected.
struct AirIdentity: Hashable, Sendable {
    var name: String?
}

enum AttributeResult: Hashable, Sendable {
    case bytes([UInt8])
    case error(UInt8)
}

/// Something that a behaviour is to be asked, outside of every lock.
struct Question: Sendable {
    enum Matter: Hashable, Sendable {
        case connection(DeviceKey)
        case linkChanged(isUp: Bool)
        case read(DeviceKey, AttributeRequest, VirtualAttribute, value: [UInt8])
        /// The id is nil for one that takes no response.
        case write(DeviceKey, AttributeRequest, VirtualAttribute, [UInt8], VirtualWriteType)
        case subscription(VirtualAttribute, isOn: Bool)
    }

    var matter: Matter
    var peripheral: VirtualPeripheral
    var behavior: any PeripheralBehavior
    var seconds: TimeInterval
}

extension Question: Hashable {
    static func == (left: Question, right: Question) -> Bool {
        left.matter == right.matter && left.peripheral == right.peripheral && left.behavior === right.behavior
            && left.seconds == right.seconds
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(matter)
        hasher.combine(seconds)
    }
}

/// What a behaviour has said.
enum Verdict: Sendable {
    case connection(DeviceKey, ConnectionAnswer)
    case attribute(DeviceKey, AttributeRequest, AttributeAnswer)
}

extension Question {
    /// Asks; nil where no answer is expected.
    func ask() -> Verdict? {
        switch matter {
        case .connection(let key):
            return .connection(key, behavior.connectRequested(to: peripheral, at: seconds))
        case .linkChanged(let isUp):
            behavior.linkChanged(of: peripheral, isUp: isUp, at: seconds)
            return nil
        case .read(let key, let request, let attribute, let value):
            let answer = behavior.read(attribute, of: peripheral, value: value, at: seconds)
            return .attribute(key, request, answer)
        case .write(let key, let request, let attribute, let bytes, let type):
            let answer = behavior.write(bytes, to: attribute, of: peripheral, type: type, at: seconds)
            return .attribute(key, request, answer)
        case .subscription(let attribute, let isOn):
            behavior.subscriptionChanged(to: attribute, of: peripheral, isOn: isOn, at: seconds)
            return nil
        }
    }
}
