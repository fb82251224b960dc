import BlueCapKit

/// One number of the statistics, with its name in metrics.
struct Reading {
    enum Value {
        /// Only grows.
        case count(Int)
        /// Only grows.
        case sum(Double)
        case present(Int)
    }

    let name: String
    let value: Value

    static func all(of statistics: CentralStatistics) -> [Reading] {
        [
            Reading(name: "interruptions", value: .count(statistics.interruptions)),
            Reading(name: "scans_started", value: .count(statistics.scansStarted)),
            Reading(name: "scans_running", value: .present(statistics.scansRunning)),
            Reading(name: "scans_failed", value: .count(statistics.scansFailed)),
            Reading(name: "scan_restarts", value: .count(statistics.scanRestarts)),
            Reading(name: "scan_seconds", value: .sum(statistics.scanSeconds)),
            Reading(name: "reports", value: .count(statistics.reports)),
        ] + all(of: statistics.peripherals)
    }

    static func all(of statistics: PeripheralStatistics) -> [Reading] {
        [
            Reading(name: "connected", value: .present(statistics.connected)),
            Reading(name: "connection_attempts", value: .count(statistics.connectionAttempts)),
            Reading(name: "connection_attempts_failed", value: .count(statistics.connectionAttemptsFailed)),
            Reading(name: "connections", value: .count(statistics.connections)),
            Reading(name: "disconnections", value: .count(statistics.disconnections)),
            Reading(name: "connected_seconds", value: .sum(statistics.secondsConnected)),
            Reading(name: "operations_pending", value: .present(statistics.operationsPending)),
            Reading(name: "operations_timed_out", value: .count(statistics.failures.timedOut)),
            Reading(name: "operations_disconnected", value: .count(statistics.failures.disconnected)),
            Reading(name: "operations_insecure", value: .count(statistics.failures.security)),
            Reading(name: "operations_cancelled", value: .count(statistics.failures.cancelled)),
            Reading(name: "operations_failed_otherwise", value: .count(statistics.failures.other)),
            Reading(name: "notifications", value: .count(statistics.notifications)),
            Reading(name: "notification_gaps", value: .count(statistics.notificationGaps)),
        ] + latency("connecting", statistics.connecting) + latency("reading", statistics.reading)
            + latency("writing", statistics.writing)
    }

    static func all(of statistics: PeripheralManagerStatistics) -> [Reading] {
        [
            Reading(name: "interruptions", value: .count(statistics.interruptions)),
            Reading(name: "registrations", value: .count(statistics.registrations)),
            Reading(name: "registrations_refused", value: .count(statistics.registrationsRefused)),
            Reading(name: "centrals_connected", value: .present(statistics.centralsConnected)),
            Reading(name: "connections", value: .count(statistics.connections)),
            Reading(name: "pairings", value: .count(statistics.pairings)),
            Reading(name: "pairings_failed", value: .count(statistics.pairingsFailed)),
            Reading(name: "reads", value: .count(statistics.reads)),
            Reading(name: "writes", value: .count(statistics.writes)),
            Reading(name: "requests_refused", value: .count(statistics.requestsRefused)),
            // Not counters: the numbers of a characteristic leave with its service.
            Reading(name: "updates_sent", value: .present(statistics.updatesSent)),
            Reading(name: "updates_dropped", value: .present(statistics.updatesDropped)),
            Reading(name: "updates_waiting", value: .present(statistics.updatesWaiting)),
        ] + latency("answering", statistics.answering)
    }

    private static func latency(_ name: String, _ latency: LatencyStatistics) -> [Reading] {
        [
            Reading(name: "\(name)_count", value: .count(latency.count)),
            Reading(name: "\(name)_seconds", value: .sum(latency.total)),
        ]
    }
}
