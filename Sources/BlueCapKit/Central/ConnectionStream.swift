import BlueCapFutures

/// The stream of a call of `connect`, in either of its two variants.
///
/// It references its peripheral until it ends.
struct ConnectionStream: Sendable {
    let report: @Sendable (ConnectionMachine.Report) -> Void
    let finish: @Sendable () -> Void

    init(
        _ promise: StreamPromise<(peripheral: Peripheral, connectionEvent: ConnectionEvent)>, of peripheral: Peripheral
    ) {
        report = { report in
            if let event = report.event {
                promise.success((peripheral, event))
            } else if let error = report.error {
                promise.failure(error)
            }
        }
        finish = { promise.finish() }
    }

    init(_ promise: StreamPromise<Void>, of peripheral: Peripheral) {
        report = { report in
            // The stream may hold the only reference to the peripheral.
            withExtendedLifetime(peripheral) {
                if let error = report.error { promise.failure(error) } else { promise.success(()) }
            }
        }
        finish = { promise.finish() }
    }
}

extension ConnectionStream {
    /// Creates the stream of a restored connection, until the application connects the peripheral itself. It reconnects
    /// until no retries remain.
    init(keeping peripheral: Peripheral) {
        report = { report in
            if report == .disconnected || report == .timedOut { peripheral.reconnect() }
        }
        finish = {}
    }
}
