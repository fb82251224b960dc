import BlueCapBlueZ
import BlueCapReactor
import XCTest

@testable import BlueCapKit

final class TransferMachineTests: XCTestCase {
    private typealias Effect = TransferMachine.Action

    private let fence = AttributeID(rawValue: 7)
    private let busy = OperationFailure(BlueZError(name: "org.bluez.Error.InProgress"))

    private func time(_ seconds: Double) -> Instant { Instant.origin.advanced(by: seconds) }

    /// Replies to each call after so many seconds, until the transfer is finished. Returns all effects.
    private func play(
        _ machine: inout TransferMachine, secondsPerWrite: Double = 0, secondsPerFence: Double = 0
    ) -> [Effect] {
        var now = 0.0
        var effects = machine.steps(.begun)
        var all = effects
        while let effect = effects.first {
            switch effect {
            case .write(_, let isRequest): now += isRequest ? secondsPerFence : secondsPerWrite
            case .read: now += secondsPerFence
            case .pause, .finish: return all
            }
            effects = machine.steps(.replied(nil, time(now)))
            all += effects
        }
        return all
    }

    func testEveryByteGoesOnceInOrderAndAFenceComesLast() {
        var machine = TransferMachine(count: 100, length: 30, fence: .reading(fence))
        XCTAssertEqual(
            play(&machine),
            [
                .write(0..<30, isRequest: false), .write(30..<60, isRequest: false), .write(60..<90, isRequest: false),
                .write(90..<100, isRequest: false), .read(fence), .finish(nil),
            ])
        XCTAssertEqual(machine.sent, 100)
        XCTAssertEqual(machine.fences, 1)
    }

    func testAWindowIsClosedByWritingItsLastPartWithResponse() {
        var machine = TransferMachine(count: 20, length: 1, fence: .writing)
        let requests = play(&machine).compactMap { effect -> Int? in
            if case .write(let part, true) = effect { part.lowerBound } else { nil }
        }
        XCTAssertEqual(requests, [15, 19])
    }

    func testWithoutAFenceThereAreCommandsAlone() {
        var machine = TransferMachine(count: 40, length: 1, fence: .none)
        XCTAssertEqual(play(&machine).count, 41)
        XCTAssertEqual(machine.fences, 0)
    }

    func testAFastLinkWidensTheWindowUpToItsLimit() {
        var machine = TransferMachine(count: 100_000, length: 1, fence: .reading(fence))
        _ = play(&machine, secondsPerFence: 0.01)
        XCTAssertEqual(machine.window, TransferMachine.windows.upperBound)
    }

    func testASlowLinkNarrowsTheWindowDownToItsLimit() {
        var machine = TransferMachine(count: 1_000, length: 1, fence: .reading(fence))
        _ = play(&machine, secondsPerFence: 1)
        XCTAssertEqual(machine.window, TransferMachine.windows.lowerBound)
    }

    func testAWindowThatFitsStays() {
        var machine = TransferMachine(count: 1_000, length: 1, fence: .reading(fence))
        _ = play(&machine, secondsPerFence: 0.1)
        XCTAssertEqual(machine.window, 16)
    }

    func testABusyCharacteristicIsTriedAgainWithTheSamePart() {
        var machine = TransferMachine(count: 2, length: 1, fence: .none)
        XCTAssertEqual(machine.steps(.begun), [.write(0..<1, isRequest: false)])
        XCTAssertEqual(machine.steps(.replied(busy, time(0))), [.pause(0.05)])
        XCTAssertEqual(machine.steps(.paused), [.write(0..<1, isRequest: false)])
        XCTAssertEqual(machine.steps(.replied(nil, time(0))), [.write(1..<2, isRequest: false)])
    }

    func testWhatIsRefusedEndsTheTransfer() {
        let refusal = OperationFailure(BlueZError(name: "org.bluez.Error.NotPermitted"))
        var machine = TransferMachine(count: 2, length: 1, fence: .none)
        _ = machine.event(.begun)
        XCTAssertEqual(machine.steps(.replied(refusal, time(0))), [.finish(refusal)])
        XCTAssertEqual(machine.steps(.replied(nil, time(0))), [])
        XCTAssertEqual(machine.sent, 0)
    }

    func testARefusedFenceIsAFenceAllTheSame() {
        let refusal = OperationFailure(BlueZError(name: "org.bluez.Error.NotPermitted"))
        var machine = TransferMachine(count: 1, length: 1, fence: .reading(fence))
        _ = machine.event(.begun)
        XCTAssertEqual(machine.steps(.replied(nil, time(0))), [.read(fence)])
        XCTAssertEqual(machine.steps(.replied(refusal, time(0))), [.finish(nil)])
    }

    func testALostLinkEndsTheTransferInEachStep() {
        var machine = TransferMachine(count: 1, length: 1, fence: .reading(fence))
        _ = machine.event(.begun)
        var later = machine
        XCTAssertEqual(machine.steps(.replied(.linkLost, time(0))), [.finish(.linkLost)])
        _ = later.event(.replied(nil, time(0)))
        XCTAssertEqual(later.steps(.replied(.linkLost, time(0))), [.finish(.linkLost)])
    }

    func testNothingIsTransferredAtOnce() {
        var machine = TransferMachine(count: 0, length: 20, fence: .reading(fence))
        XCTAssertEqual(machine.steps(.begun), [.finish(nil)])
    }
}

extension TransferMachine {
    fileprivate mutating func steps(_ event: Event) -> [Action] { self.event(event).map { [$0] } ?? [] }
}
