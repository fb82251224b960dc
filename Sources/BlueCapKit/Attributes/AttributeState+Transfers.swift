import BlueZ
import Foundation
import GATT
import Reactor

/// Long runs of writes without response: one operation of their characteristic, made of many calls.
extension AttributeState {
    struct Transfer: Equatable {
        let data: Data
        let target: AttributeID
        var machine: TransferMachine
    }

    /// Why a fence cannot be had.
    func refusal(of fence: TransferFence, for target: AttributeID) -> CharacteristicError? {
        switch fence {
        case .automatic, .none: nil
        case .writing: table[target]?.declaration.properties.contains(.write) == true ? nil : .writeNotSupported
        case .reading(let id): canBeRead(id) ? nil : .readNotSupported
        }
    }

    private func canBeRead(_ id: AttributeID) -> Bool {
        guard let record = table[id], record.isPresent, !record.handle.isVirtual else { return false }
        return record.declaration.properties.contains(.read)
    }

    /// A read disturbs the order of nothing, so it is preferred: BlueZ up to 5.66 has several channels by default (EATT), and
    /// a part that is written with response could overtake the others.
    private func machineFence(_ fence: TransferFence, for target: AttributeID) -> TransferMachine.Fence {
        switch fence {
        case .none: return .none
        case .writing: return .write
        case .reading(let id): return .read(id)
        case .automatic:
            if canBeRead(target) { return .read(target) }
            let siblings = table[target]?.parent.flatMap { table[$0]?.children } ?? []
            if let sibling = siblings.first(where: canBeRead) { return .read(sibling) }
            return table[target]?.declaration.properties.contains(.write) == true ? .write : .none
        }
    }

    mutating func beginTransfer(
        _ operation: OperationLanes<Request>.Operation, of data: Data, _ fence: TransferFence
    ) -> Effects {
        let length = table[operation.target]?.maximumWriteLength(for: .withoutResponse) ?? 20
        let machine = TransferMachine(
            count: data.count, length: length, fence: machineFence(fence, for: operation.target))
        transfers[operation.id] = Transfer(data: data, target: operation.target, machine: machine)
        return advance(operation.id, .begun)
    }

    mutating func transferReplied(
        _ id: OperationID, _ result: Result<Data?, BlueZError>, at now: Instant
    ) -> Effects {
        switch result {
        case .success: advance(id, .replied(nil, now))
        case .failure(let error): advance(id, .replied(OperationFailure(error), now))
        }
    }

    mutating func transferPaused(_ id: OperationID) -> Effects {
        // Where nobody waits any more its characteristic is free now.
        transfers[id] == nil ? perform(lanes.replied(id, nil)) : advance(id, .paused)
    }

    private mutating func advance(_ id: OperationID, _ event: TransferMachine.Event) -> Effects {
        var result: Effects = []
        for effect in transfers[id]?.machine.event(event) ?? [] {
            guard let transfer = transfers[id] else { break }
            switch effect {
            case .write(let part, let isRequest):
                let start = transfer.data.startIndex
                let bytes = Data(transfer.data[start + part.lowerBound..<start + part.upperBound])
                result += call(
                    id, transfer.target, .write(bytes, isRequest ? .withResponse : .withoutResponse, offset: 0))
            case .read(let fence): result += call(id, fence, .read(offset: 0))
            case .pause(let seconds): result.append(.startTimer(.transfer(id), seconds))
            case .finish(let failure):
                if failure == nil { reports[id] = TransferReport(transfer.machine) }
                result += perform(lanes.replied(id, failure))
            }
        }
        return result
    }

    /// What has become of a transfer.
    mutating func takeReport(_ id: OperationID) -> TransferReport? { reports.removeValue(forKey: id) }
}

extension TransferReport {
    init(_ machine: TransferMachine) {
        self.init(bytes: machine.sent, seconds: machine.seconds, fences: machine.fences)
    }
}

/// How it is made sure that what was written has gone out, with ids for characteristics.
enum TransferFence: Hashable, Sendable {
    case automatic
    case reading(AttributeID)
    case writing
    case none
}
