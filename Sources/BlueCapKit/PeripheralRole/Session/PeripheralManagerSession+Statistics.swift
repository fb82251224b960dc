import BlueCapBlueZ
import Foundation
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor

/// Counting for ``PeripheralManagerStatistics``.
extension PeripheralManagerSession {
    /// Any thread.
    var statistics: PeripheralManagerStatistics {
        var statistics = counts.withLock { $0 }
        let characteristics = core.withLock { core in
            statistics.interruptions = core.shell.interruptions
            statistics.centralsConnected = core.centrals.count
            return core.served.values.flatMap(\.characteristics)
        }
        for characteristic in characteristics {
            characteristic.core.withLock { core in
                statistics.updatesSent += core.updates.sent
                statistics.updatesDropped += core.updates.dropped
                statistics.updatesWaiting += core.updates.count
            }
        }
        return statistics
    }

    // MARK: On the loop

    /// Counts a report of BlueZ on a registration.
    func count(_ state: RegistrationState) {
        switch state {
        case .registered: counts.withLock { $0.registrations += 1 }
        case .refused, .retrying: counts.withLock { $0.registrationsRefused += 1 }
        case .idle, .waiting, .registering, .timedOut: break
        }
    }

    /// Counts a request, and its answer when there is one.
    func count(_ request: ServerRequest, _ answer: ServerAnswer) {
        let began = loop.now
        counts.withLock { counts in
            if request.value == nil { counts.reads += 1 } else { counts.writes += 1 }
        }
        answer.whenReplied { [weak self] result in
            guard let self else { return }
            let seconds = loop.now.seconds(since: began)
            counts.withLock { counts in
                counts.answering.add(seconds)
                if case .failure = result { counts.requestsRefused += 1 }
            }
        }
    }
}
