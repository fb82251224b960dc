/// The notifications of one characteristic for this process, as a value: which managers subscribe, and what BlueZ has been
/// asked for. Events go in and effects come out.
///
/// | state | what BlueZ has of this process | ends with |
/// |---|---|---|
/// | off | nothing | subscribe |
/// | starting | a `StartNotify` under way, over signals or to find out whether BlueZ refuses | started, the last unsubscribe |
/// | confirming | a session, `Notifying` still false | notifyingChanged, timerFired, the last unsubscribe |
/// | acquiring | an `AcquireNotify` under way | acquired, the last unsubscribe |
/// | on | a session, or a socket | notifyingChanged, socketClosed, the last unsubscribe |
/// | interrupted | perhaps a session, without values | notifyingChanged, subscribe, timerFired, the last unsubscribe |
/// | stopping | a `StopNotify` under way, or to be sent after the end of the link | stopped |
///
/// Every state also ends with `removed`. The first subscriber determines the transport; the others share it. `StopNotify` is
/// called after the end of the link too, although no session is left: otherwise BlueZ would subscribe again by itself on the next
/// link, and then once more for the next call. The reply to a call other than the newest is ignored: its subscription was
/// withdrawn, and BlueZ may never reply to a withdrawn `AcquireNotify`.
struct NotifyMachine {
    enum State { case off, starting, confirming, acquiring, on, interrupted, stopping }

    enum Effect: Equatable {
        case start(UInt32), acquire(UInt32), stop(UInt32)
        case closeSocket
        case startTimer(Double)
        case cancelTimer
        case report(ObjectIdentifier, SharedNotifications.Event)
        /// All that have unsubscribed get this result; `nil` for success.
        case stopped(BlueZError?)
    }

    typealias Effects = [Effect]

    private struct Subscriber {
        let id: ObjectIdentifier
        let overSocket: Bool
        /// Whether BlueZ might not reply to `AcquireNotify`, because the peripheral refuses for lack of security. Such a
        /// subscription is tried over signals first.
        let isReplyUncertain: Bool
    }

    /// The time that a peer has for the CCC write (Bluetooth Core Specification 5.4, volume 3, part F, 3.3.3).
    static let confirmationLimit = 30.0

    private(set) var state = State.off
    private var subscribers: [Subscriber] = []
    private var usesSocket = false
    /// Whether BlueZ has accepted a subscription over signals that was made to find that out.
    private var isTried = false
    /// The number of the newest call.
    private var call: UInt32 = 0
    /// Whether BlueZ reads the value itself, and keeps it current without a call.
    private let isVirtual: Bool

    init(isVirtual: Bool) { self.isVirtual = isVirtual }

    var isIdle: Bool { state == .off && subscribers.isEmpty }
    func isAcquiring(_ number: UInt32) -> Bool { state == .acquiring && number == call }
    func isStopping(_ number: UInt32) -> Bool { state == .stopping && number == call }

    /// Whether the values that BlueZ signals are notifications. They are also before it has replied to the first or the last
    /// call.
    var passesSignals: Bool {
        switch state {
        case .starting, .confirming, .on, .interrupted, .stopping: !usesSocket
        case .off, .acquiring: false
        }
    }

    // MARK: Subscribers

    /// - Parameter isRepeated: Whether BlueZ has just refused the same, so that it is asked after a pause.
    mutating func subscribe(
        _ id: ObjectIdentifier, overSocket: Bool, isReplyUncertain: Bool, isRepeated: Bool = false,
        into effects: inout Effects
    ) {
        subscribers.removeAll { $0.id == id }
        subscribers.append(Subscriber(id: id, overSocket: overSocket, isReplyUncertain: isReplyUncertain))
        switch state {
        case .off where isRepeated:
            usesSocket = overSocket
            pause(&effects)
        case .interrupted where isRepeated: break
        case .off, .interrupted: begin(&effects)
        case .on: effects.append(.report(id, .began))
        case .starting, .confirming, .acquiring, .stopping: break
        }
    }

    mutating func unsubscribe(_ id: ObjectIdentifier, into effects: inout Effects) {
        subscribers.removeAll { $0.id == id }
        if state == .stopping { return }
        if !subscribers.isEmpty || state == .off { return effects.append(.stopped(nil)) }
        stop(&effects)
    }

    private mutating func begin(_ effects: inout Effects) {
        guard let first = subscribers.first else { return }
        if state == .interrupted {
            effects.append(.cancelTimer)
            report(.asked, &effects)
        } else {
            usesSocket = first.overSocket
        }
        if isVirtual { return usesSocket ? fail(.noSocket, &effects) : turnedOn(&effects) }
        call &+= 1
        if usesSocket, isTried || !first.isReplyUncertain {
            state = .acquiring
            effects.append(.acquire(call))
        } else {
            state = .starting
            effects.append(.start(call))
        }
    }

    private mutating func stop(_ effects: inout Effects) {
        effects.append(.cancelTimer)
        guard !isVirtual else {
            state = .off
            return effects.append(.stopped(nil))
        }
        call &+= 1
        state = .stopping
        effects.append(.stop(call))
    }

    private mutating func turnedOn(_ effects: inout Effects) {
        (state, isTried) = (.on, false)
        report(.began, &effects)
    }

    /// Ends the subscriptions.
    private mutating func fail(_ error: BlueZError, _ effects: inout Effects) {
        report(.failed(error), &effects)
        (state, subscribers, isTried) = (.off, [], false)
    }

    private mutating func interrupt(_ effects: inout Effects) {
        report(.interrupted, &effects)
        pause(&effects)
    }

    private func report(_ event: SharedNotifications.Event, _ effects: inout Effects) {
        for subscriber in subscribers { effects.append(.report(subscriber.id, event)) }
    }

    private mutating func pause(_ effects: inout Effects) {
        state = .interrupted
        effects.append(.startTimer(SharedNotifications.interruptionLimit))
    }

    // MARK: BlueZ

    /// BlueZ has replied to `StartNotify`. `isNotifying`: the characteristic's `Notifying` at this moment.
    mutating func started(_ number: UInt32, _ error: BlueZError?, isNotifying: Bool, into effects: inout Effects) {
        guard number == call, state == .starting else { return }
        if let error { return fail(error, &effects) }
        if usesSocket {
            isTried = true
            return stop(&effects)
        }
        if isNotifying { return turnedOn(&effects) }
        state = .confirming
        effects.append(.startTimer(Self.confirmationLimit))
    }

    /// BlueZ has replied to `AcquireNotify`.
    mutating func acquired(_ number: UInt32, _ error: BlueZError?, into effects: inout Effects) {
        guard isAcquiring(number) else { return }
        if let error { fail(error, &effects) } else { turnedOn(&effects) }
    }

    /// BlueZ has replied to `StopNotify`. The socket is closed after that: until then BlueZ might consider it in use, and
    /// refuse the next one.
    mutating func stopped(_ number: UInt32, _ error: BlueZError?, into effects: inout Effects) {
        guard isStopping(number) else { return }
        state = .off
        effects.append(.closeSocket)
        effects.append(.stopped(error.flatMap { $0.meansNothingToStop ? nil : $0 }))
        if subscribers.isEmpty { isTried = false } else { begin(&effects) }
    }

    mutating func notifyingChanged(_ isNotifying: Bool, into effects: inout Effects) {
        switch state {
        case .confirming where isNotifying, .interrupted where isNotifying && !usesSocket:
            effects.append(.cancelTimer)
            turnedOn(&effects)
        case .on where !isNotifying && !usesSocket: interrupt(&effects)
        default: break
        }
    }

    mutating func timerFired(into effects: inout Effects) {
        switch state {
        case .confirming:
            fail(.notConfirmed, &effects)
            stop(&effects)
        case .interrupted: begin(&effects)
        case .off, .starting, .acquiring, .on, .stopping: break
        }
    }

    mutating func socketClosed(into effects: inout Effects) {
        effects.append(.closeSocket)
        if state == .on { interrupt(&effects) }
    }

    /// BlueZ has removed the characteristic's object, and with it its subscribers.
    mutating func removed(into effects: inout Effects) {
        effects.append(.cancelTimer)
        effects.append(.closeSocket)
        effects.append(.stopped(nil))
        fail(.noSuchObject, &effects)
    }
}

extension BlueZError {
    fileprivate static let noSocket = BlueZError(
        name: "org.bluez.Error.NotSupported", message: "BlueZ has no socket for this value")
    fileprivate static let notConfirmed = BlueZError(
        name: "org.freedesktop.DBus.Error.NoReply", message: "Notifications were not turned on in time")

    /// Whether a refused `StopNotify` means that there is no session, or no object that could have one.
    fileprivate var meansNothingToStop: Bool {
        switch cause {
        case .unknownObject, .unknownMethod, .notConnected, .serviceGone, .disconnected, .doesNotExist: true
        // The error name is not specific; only this message is (src/gatt-client.c, unchanged since 5.55).
        case .failed: message == "No notify session started"
        default: false
        }
    }
}
