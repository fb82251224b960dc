import BlueZ
import Foundation

/// The connection's part of a peripheral's state.
extension PeripheralState {
    /// Has the connection decide, and tells those who live on the link what becomes of it.
    mutating func connect(_ event: ConnectionMachine.Event) -> [Effect] {
        let effects = connection.event(event)
        for effect in effects { runs.note(effect) }
        return effects.flatMap { effect -> [Effect] in
            switch effect {
            case .startTimer(let timer, let seconds): [.startTimer(.connection(timer), seconds)]
            case .cancelTimer(let timer): [.cancelTimer(.connection(timer))]
            case .linkWentUp: [.connection(effect, device: facts.device)] + linkWentUp()
            case .linkWentDown(let loss): linkWentDown(loss) + [.connection(effect, device: facts.device)]
            case .forget:
                endRefresh() + cancelRuns(.peripheral(.forcedDisconnect)) + attributes.abandonLookUps()
                    + subscriptions.closed(canCall: facts.device != nil)
                    + [.connection(effect, device: facts.device)]
            case .callConnect, .cancelConnect, .callDisconnect, .seek, .stopSeeking, .pauseScan, .resumeScan, .report,
                .reportFailure, .finishStream:
                [.connection(effect, device: facts.device)]
            }
        }
    }

    /// The user wants no link any more, whatever it was for.
    mutating func disconnectAsked() -> [Effect] {
        endRefresh() + connect(.disconnectAsked) + cancelRuns(.peripheral(.forcedDisconnect))
    }

    private mutating func endRefresh() -> [Effect] {
        isRefreshing = false
        return attributes.nextLinkUnwanted()
    }

    /// Whether there is a link, or the application wants one.
    var isLinkExpected: Bool { attributes.hasLink || connection.isWanted }

    /// Whether somebody wants something of this peripheral, or something of that is still to end.
    var isInUse: Bool { isConnectionInUse || !runs.queue.isIdle }

    /// Whether somebody wants this peripheral connected, or something of that is still to end.
    var isConnectionInUse: Bool {
        switch connection.state {
        case .disconnected, .closed: false
        case .waiting, .seeking, .connecting, .cancelling, .connected, .disconnecting: true
        }
    }
}

extension ConnectionMachine {
    /// Whether a link of ours is there, or may come.
    var hasOwnLink: Bool {
        switch state {
        case .connecting, .cancelling: true
        case .connected, .disconnecting: isOurs
        case .disconnected, .waiting, .seeking, .closed: false
        }
    }
}
