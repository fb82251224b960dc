import BlueCapKit
import Foundation

/// What happens to a peripheral that is served: all that is printed of it.
enum ServingEvent: Equatable, Sendable {
    /// What it happens to.
    struct Attribute: Equatable, Sendable {
        var service: CBUUID
        var uuid: CBUUID
        var name: String?
    }

    /// What is offered, and what is advertised.
    case serving(services: [Service], advertisements: [AdvertisingData])
    case connected(Who)
    case disconnected(Who)
    case subscribed(Attribute, Who)
    case unsubscribed(Attribute, Who)
    case read(Attribute, AttributeValue, Who)
    case written(Attribute, AttributeValue, Who, CBATTError.Code)
    /// A value went out to those who have subscribed.
    case sent(Attribute, AttributeValue)
    case finished(Summary)

    struct Service: Equatable, Sendable {
        var uuid: CBUUID
        var name: String?
    }

    /// The central, by its address; `nil` where BlueZ does not tell it.
    struct Who: Equatable, Sendable {
        var address: String?

        init(_ address: String?) { self.address = address }

        init(_ central: Central) { address = central.address?.description }

        init(_ central: any CBCentralInjectable) { address = (central as? Central)?.address?.description }
    }

    struct Summary: Equatable, Sendable {
        /// How many services were served.
        var services = 0
        var connections = 0
        var subscriptions = 0
        var reads = 0
        var writes = 0
        var updates = 0
        var seconds = 0.0

        mutating func count(_ event: ServingEvent) {
            switch event {
            case .connected: connections += 1
            case .subscribed: subscriptions += 1
            case .read: reads += 1
            case .written: writes += 1
            case .sent: updates += 1
            case .serving(let offered, _): services = offered.count
            case .disconnected, .unsubscribed, .finished: break
            }
        }
    }
}
