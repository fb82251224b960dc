public import Foundation

/// What a read or write request of a central shows to the program that answers it.
///
/// A protocol, so that tests can make requests of their own.
public protocol CBATTRequestInjectable: Sendable {
    /// The UUID of the characteristic that the request is for.
    var characteristicUUID: CBUUID { get }
    /// At which byte of the value the request begins; 0 but for values longer than a packet.
    var offset: Int { get }
    /// The bytes that the central wants to write; `nil` in a read request.
    var value: Data? { get }
}

/// What a central shows to the peripheral that it is connected to.
///
/// A protocol, so that tests can make centrals of their own.
public protocol CBCentralInjectable: Sendable {
    /// The identifier of the central: the same whenever it comes, as long as its address is.
    var identifier: UUID { get }
    /// The largest number of bytes that a notification to this central can carry: the link's MTU less 3.
    var maximumUpdateValueLength: Int { get }
}
