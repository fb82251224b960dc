import Foundation
import BlueCapFutures
import BlueCapReactor

extension ManagerSession {
    /// Waits until the manager is powered on, for at most `timeout` seconds of the manager's clock.
    func waitUntilPoweredOn(timeout: TimeInterval) async throws {
        try Task.checkCancellation()
        let expiry = Promise<Void>()
        // A duration that the loop's clock cannot hold is as good as infinity.
        let timer =
            timeout < 3e9
            ? loop.schedule(after: max(0, timeout)) { [weak self] in
                guard let (state, explanation) = self?.standing else { return }
                let error = BluetoothUnavailableError(state: state, explanation: explanation)
                expiry.complete(state == .poweredOn ? .success(()) : .failure(error))
            } : nil
        defer { if let timer { loop.cancel(timer) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [stateStream] in
                for try await state in stateStream.values where state == .poweredOn { return }
                try Task.checkCancellation()
                throw BluetoothUnavailableError(state: .unknown, explanation: "The manager has ended; create another.")
            }
            group.addTask { try await expiry.future.value }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}
