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
    /// Creates the stream of `stayConnected`. It ends with the connection, and fails if the application did not end that.
    init(_ stream: FutureStream<ConnectionChange>, of peripheral: Peripheral) {
        let finish: @Sendable () -> Void = {
            if peripheral.session.core.withLock({ $0.shell.isClosed }) { stream.failure(PeripheralError.disconnected) }
            stream.finish()
        }
        self.finish = finish
        report = { report in
            switch (report.event, report.error) {
            case (.connect?, _): stream.success(.connected)
            case (.timeout?, _): stream.success(.timedOut)
            case (.disconnect?, _): stream.success(.disconnected(peripheral.disconnectReason ?? .linkLost))
            // Without a link, the end that the application requests is reported as the failure `disconnected`.
            case (_?, _), (nil, .disconnected?), (nil, nil): finish()
            case (nil, let error?):
                stream.failure(error)
                // Also ends the attempt that follows a loss.
                stream.lastReaderEnded?()
            }
        }
    }
}
