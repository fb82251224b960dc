import BlueZ
import GATT

extension PeripheralFailure {
    /// The documented error that a failed operation is for whoever asked for it.
    init(_ failure: OperationFailure, _ request: AttributeState.Request) {
        self =
            switch (failure, request) {
            case (.linkLost, _): .peripheral(.disconnected)
            case (.linkEnded, _): .peripheral(.forcedDisconnect)
            case (.invalidated, _): .characteristic(.invalidated)
            case (.timedOut, .read): .characteristic(.readTimeout)
            case (.timedOut, .write), (.timedOut, .transfer): .characteristic(.writeTimeout)
            case (.busy(let error), .read), (.refused(let error), .read):
                .characteristic(.readFailed(BusFailure(error)))
            case (.busy(let error), .write), (.refused(let error), .write), (.busy(let error), .transfer),
                (.refused(let error), .transfer):
                .characteristic(.writeFailed(BusFailure(error)))
            }
    }
}

extension BusFailure {
    init(_ error: BlueZError) {
        self.init(
            name: error.name, message: error.message,
            attError: error.attCode.flatMap { CBATTError.Code(rawValue: Int($0)) })
    }
}
