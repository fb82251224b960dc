import BlueCapDBus
import TestSupport

@testable import BlueCapBlueZ

extension AgentMachine: TableMachine {
    enum Event {
        case daemonReady, daemonLeft, released, timerFired
        case wanted(Requirement?), busyChanged(Bool), replied(CallID, BlueZError? = nil)
        case holds((AgentMachine) -> Bool)
    }

    mutating func handle(_ event: Event) -> [Order]? {
        switch event {
        case .daemonReady: daemonReady()
        case .daemonLeft: daemonLeft()
        case .released: released()
        case .timerFired: timerFired()
        case .wanted(let requirement): wanted(requirement)
        case .busyChanged(let isBusy): busyChanged(isBusy)
        case .replied(let call, let error): replied(call, error: error)
        case .holds(let condition): condition(self) ? [] : nil
        }
    }
}

extension DaemonMachine: TableMachine {
    enum Event {
        case start, stop, busOpened, timerFired
        case busClosed(DBusError), ownerChanged(String?), loadReplied(LoadID, DBusError? = nil)
        case holds((DaemonMachine) -> Bool)
    }

    mutating func handle(_ event: Event) -> [Effect]? {
        switch event {
        case .start: start()
        case .stop: stop()
        case .busOpened: busOpened()
        case .timerFired: timerFired()
        case .busClosed(let error): busClosed(error)
        case .ownerChanged(let owner): ownerChanged(owner)
        case .loadReplied(let load, let error): loadReplied(load, error: error)
        case .holds(let condition): condition(self) ? [] : nil
        }
    }
}

extension DiscoveryMachine: TableMachine {
    enum Event {
        case poweredOn, adapterLost
        case scanAdded(Scan), scanRemoved(ScanID), paused(Bool), discoveringChanged(Bool)
        case replied(RequestID, BlueZError? = nil), timerFired(Timer)
        case holds((DiscoveryMachine) -> Bool)
    }

    mutating func handle(_ event: Event) -> [Effect]? {
        switch event {
        case .poweredOn: poweredOn()
        case .adapterLost: adapterLost()
        case .scanAdded(let scan): scanAdded(scan)
        case .scanRemoved(let id): scanRemoved(id)
        case .paused(let isPaused): paused(isPaused)
        case .discoveringChanged(let isDiscovering): discoveringChanged(isDiscovering)
        case .replied(let request, let error): replied(request, error: error)
        case .timerFired(let timer): timerFired(timer)
        case .holds(let condition): condition(self) ? [] : nil
        }
    }
}

extension LinkMachine: TableMachine {
    enum Event {
        case timerFired
        case requested(ConnectID, ObjectKey), cancelled(ConnectID), connectReplied(ConnectID, ObjectKey, BlueZError?)
        case disconnectAsked(ObjectKey), disconnectReplied(ObjectKey, BlueZError?, isConnected: Bool)
        case linkEnded(ObjectKey)
        case holds((LinkMachine) -> Bool)
    }

    mutating func handle(_ event: Event) -> [Effect]? {
        switch event {
        case .timerFired: timerFired()
        case .requested(let id, let device): requested(id, device)
        case .cancelled(let id): cancelled(id)
        case .connectReplied(let id, let device, let error): connectReplied(id, device, error: error)
        case .disconnectAsked(let device): disconnectAsked(device)
        case .disconnectReplied(let device, let error, let isConnected):
            disconnectReplied(device, error: error, isConnected: isConnected)
        case .linkEnded(let device): linkEnded(device)
        case .holds(let condition): condition(self) ? [] : nil
        }
    }
}

extension PairingMachine: TableMachine {
    enum Event {
        case pairSent, disconnected, cancelReplied
        case statusChanged(LinkStatus, hasLinkEnded: Bool = false)
        case asked(WaiterID, limit: Double, mayEndLink: Bool = true), cancelAsked(WaiterID)
        case agentReady(BlueZError?, mustRelink: Bool), pairReplied(BlueZError? = nil, hasLostTurn: Bool = false)
        case requested(AgentRequest.ID, isDisplay: Bool, isReceived: Bool)
        case answered(AgentRequest.ID, AgentAnswer)
        case timerFired(Timer, agentProblem: BlueZError? = nil), deviceGone(BlueZError)
        /// BlueZ asks for or displays something, and the answer rejects that. The orders are those after the end of the request.
        case refuse(PairingCause = .rejectedByUser), refuseDisplay
        case holds((PairingMachine) -> Bool)
    }

    mutating func refuse(_ cause: PairingCause = .rejectedByUser) -> [Order]? {
        let received = requested(9, isDisplay: false, isReceived: true)
        let orders = answered(9, .reject(cause))
        guard received == [.receive(9)], orders.first == .endRequest(9, .answered(.reject(cause))) else { return nil }
        return Array(orders.dropFirst())
    }

    mutating func refuseDisplay() -> [Order]? {
        let received = requested(8, isDisplay: true, isReceived: true)
        let orders = answered(8, .reject(.rejectedByUser))
        let ends: [Order] = [.cancelTimer(.display), .endRequest(8, .answered(.reject(.rejectedByUser)))]
        guard received == [.startTimer(.display, seconds: 35), .receive(8)], Array(orders.prefix(2)) == ends else {
            return nil
        }
        return Array(orders.dropFirst(2))
    }

    mutating func handle(_ event: Event) -> [Order]? {
        switch event {
        case .pairSent:
            pairSent()
            return []
        case .disconnected: return disconnected()
        case .cancelReplied: return cancelReplied()
        case .statusChanged(let status, let hasLinkEnded): return statusChanged(status, hasLinkEnded: hasLinkEnded)
        case .asked(let waiter, let limit, let mayEndLink): return asked(waiter, limit: limit, mayEndLink: mayEndLink)
        case .cancelAsked(let waiter): return cancelAsked(waiter)
        case .agentReady(let error, let mustRelink): return agentReady(error: error, mustRelink: mustRelink)
        case .pairReplied(let error, let hasLostTurn): return pairReplied(error, hasLostTurn: hasLostTurn)
        case .requested(let number, let isDisplay, let isReceived):
            return requested(number, isDisplay: isDisplay, isReceived: isReceived)
        case .answered(let number, let answer): return answered(number, answer)
        case .timerFired(let timer, let problem): return timerFired(timer, agentProblem: problem)
        case .deviceGone(let error): return deviceGone(error)
        case .refuse(let cause): return refuse(cause)
        case .refuseDisplay: return refuseDisplay()
        case .holds(let condition): return condition(self) ? [] : nil
        }
    }
}

extension RegistrationMachine: TableMachine {
    enum Event {
        case changed, end, timerFired
        case obstacleChanged(RegistrationState.Obstacle?), released(isLimited: Bool = false)
        case replied(RequestID, BlueZError? = nil), unanswered(RequestID)
        case holds((RegistrationMachine) -> Bool)
    }

    mutating func handle(_ event: Event) -> [Order]? {
        switch event {
        case .changed: changed()
        case .end: end()
        case .timerFired: timerFired()
        case .obstacleChanged(let obstacle): obstacleChanged(obstacle)
        case .released(let isLimited): released(isLimited: isLimited)
        case .replied(let request, let error): replied(request, error: error)
        case .unanswered(let request): unanswered(request)
        case .holds(let condition): condition(self) ? [] : nil
        }
    }
}
