import BlueCapKit
import Foundation
import GatewayCore
import GatewayRadio
import Synchronization
import XCTest

/// Records what a radio reports.
final class Recorder: Sendable {
    private struct Waiter {
        var isDone: @Sendable ([RadioEvent]) -> Bool
        var continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var events: [RadioEvent] = []
        var waiters: [Int: Waiter] = [:]
        var number = 0
    }

    private let state = Mutex(State())

    var events: [RadioEvent] { state.withLock(\.events) }

    func record(_ event: RadioEvent) {
        // Reports of the scan would hide the rest.
        if case .report = event, events.contains(where: { if case .report = $0 { true } else { false } }) { return }
        let done = state.withLock { state in
            state.events.append(event)
            let done = state.waiters.filter { $0.value.isDone(state.events) }
            for number in done.keys { state.waiters[number] = nil }
            return done.values.map(\.continuation)
        }
        for continuation in done { continuation.resume(returning: true) }
    }

    /// Waits until the events satisfy a condition; fails after the limit.
    func wait(
        _ what: String, limit: Duration = .seconds(20), line: UInt = #line,
        until isDone: @escaping @Sendable ([RadioEvent]) -> Bool
    ) async {
        let number = state.withLock { state in
            state.number += 1
            return state.number
        }
        let timer = Task { [self] in
            try await Task.sleep(for: limit)
            let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
            waiter?.continuation.resume(returning: false)
        }
        let isInTime = await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if isDone(state.events) { return true }
                state.waiters[number] = Waiter(isDone: isDone, continuation: continuation)
                return false
            }
            if isDone { continuation.resume(returning: true) }
        }
        timer.cancel()
        if !isInTime { XCTFail("\(what) has not happened in \(limit): \(events)", line: line) }
    }
}

extension [RadioEvent] {
    /// The changes of the links, in their order.
    var links: [LinkChange] { compactMap { if case .link(_, let change) = $0 { change } else { nil } } }

    /// The first bytes of the values, in their order.
    var values: [UInt8] { compactMap { if case .value(_, _, let data, _) = $0 { data.first } else { nil } } }

    /// The reasons of the gaps, in their order.
    var gaps: [GapPayload.Reason] { compactMap { if case .gap(_, _, let reason, _) = $0 { reason } else { nil } } }
}
