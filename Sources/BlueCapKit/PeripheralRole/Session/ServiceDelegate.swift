import BlueZ
import Foundation
import GATT

/// Answers for the attributes of one service: finds whose a request is. On the loop.
final class ServiceDelegate: ServerDelegate {
    private enum Target {
        case characteristic(MutableCharacteristic)
        case descriptor(MutableDescriptor)
    }

    private weak let session: PeripheralManagerSession?
    private let targets: [ServerAttributeID: Target]

    init(_ session: PeripheralManagerSession, _ characteristics: [MutableCharacteristic]) {
        self.session = session
        var targets: [ServerAttributeID: Target] = [:]
        for characteristic in characteristics {
            targets[characteristic.number.attribute] = .characteristic(characteristic)
            for descriptor in characteristic.descriptors {
                targets[descriptor.number.attribute] = .descriptor(descriptor)
            }
        }
        self.targets = targets
    }

    func readRequested(_ request: ServerReadRequest, _ answer: ServerAnswer<Data>) {
        guard let session, let target = targets[request.attribute] else { return }
        switch target {
        case .characteristic(let characteristic):
            characteristic.readArrived(request, from: session.central(request.peer), answer, session)
        case .descriptor(let descriptor):
            answer.succeed(descriptor.value ?? Data())
        }
    }

    func writeRequested(_ request: ServerWriteRequest, _ answer: ServerAnswer<Void>) {
        guard let session, let target = targets[request.attribute] else { return }
        switch target {
        case .characteristic(let characteristic):
            characteristic.writeArrived(request, from: session.central(request.peer), answer, session)
        case .descriptor(let descriptor):
            answer.succeed()
            descriptor.written(request.value) { session.complete($0) }
        }
    }

    func subscribersChanged(of characteristic: ServerAttributeID, to subscribers: [ServerSubscriber]) {
        guard let session, case .characteristic(let characteristic)? = targets[characteristic] else { return }
        let subscribers = subscribers.map {
            MutableCharacteristic.Subscriber(central: session.central($0.peer), source: $0)
        }
        characteristic.subscribersChanged(to: subscribers, session)
    }
}
