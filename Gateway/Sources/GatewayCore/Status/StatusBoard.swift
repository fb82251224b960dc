public import Foundation

/// What the parts of the gateway report about themselves, for the page and the metrics.
///
/// Each part calls the function of what has happened. A call takes one lock for less than a microsecond, and for a device
/// that is known it allocates nothing. All that is held is bounded by ``Limits``; texts that are too long are cut off.
/// All functions may be called on any thread.
// `@unchecked`: `state` is accessed only while `lock` is held.
public final class StatusBoard: @unchecked Sendable {
    /// How much a board holds.
    public struct Limits: Hashable, Sendable {
        /// The number of devices. If there are more, those without a link whose last reports are the oldest are
        /// removed.
        public var devices = 2_000
        /// The number of characteristics whose last values are held.
        public var values = 200
        /// The number of refused commands.
        public var refusals = 100
        /// The number of decoded values of a device.
        public var readings = 32
        /// The length of a text in bytes of UTF-8.
        public var text = 256
        /// After how long a device without a link is removed.
        public var silence = Duration.seconds(900)

        public init() {}
    }

    /// A time in the life of a board, for ``StatusBoard/changes(since:)``.
    public struct Mark: Hashable, Sendable {
        fileprivate var revision: Int
        fileprivate var step: Int
    }

    private let lock = NSLock()
    private var state: State
    private let limits: Limits
    private let uptime: @Sendable () -> Duration
    private let date: @Sendable () -> Date

    /// Creates a board.
    ///
    /// - Parameters:
    ///   - gateway: The name of the gateway.
    ///   - version: The version of the program.
    ///   - broker: The address of the broker for display, without user and password.
    ///   - limits: How much is held.
    ///   - uptime: Returns a time that only grows; ages and steps are measured with it. The default is the machine's
    ///     continuous clock.
    ///   - date: Returns the time of the day, which may be set at any time. Times of events are calculated from it and
    ///     their age.
    public init(
        gateway: String, version: String, broker: String, limits: Limits = Limits(),
        uptime: (@Sendable () -> Duration)? = nil, date: @escaping @Sendable () -> Date = { Date() }
    ) {
        let begin = ContinuousClock.now
        self.limits = limits
        self.uptime = uptime ?? { ContinuousClock.now - begin }
        self.date = date
        let now = Self.milliseconds(self.uptime())
        state = State(gateway: gateway, version: version, broker: broker, started: now)
    }

    // MARK: - What has happened

    /// A report of a device has arrived.
    ///
    /// - Parameters:
    ///   - device: The device.
    ///   - name: The name that it advertises. `nil` and an empty name leave the known one.
    ///   - strength: The strength in dBm, -127 to 20; `nil` if it is unknown.
    public func reported(_ device: DeviceName, name: String?, strength: Int?) {
        let now = now
        locked { state in
            state.revision += 1
            state.reports += 1
            let index = state.index(of: device, now: now, limits: limits)
            state.devices.values[index].reported(name, strength, now, state.revision, limits)
        }
    }

    /// The values of a report were decoded. They replace earlier ones of the same names.
    public func decoded(_ device: DeviceName, _ readings: [StatusReading]) {
        let now = now
        locked { state in
            state.revision += 1
            let index = state.index(of: device, now: now, limits: limits)
            state.devices.values[index].merge(readings, state.revision, limits)
        }
    }

    /// The link to a device has changed.
    ///
    /// - Parameters:
    ///   - device: The device. The board keeps a device while its link is not `.none`.
    ///   - link: The new state.
    ///   - detail: More about it, such as the reason of a failure.
    public func link(_ device: DeviceName, _ link: LinkStatus, detail: String? = nil) {
        let now = now
        locked { state in
            state.revision += 1
            let index = state.index(of: device, now: now, limits: limits)
            let old = state.devices.values[index].link
            state.connected += (link == .connected ? 1 : 0) - (old == .connected ? 1 : 0)
            state.devices.values[index].link = link
            state.devices.values[index].detail = detail.map { Self.cut($0, limits.text) }
            state.devices.values[index].revision = state.revision
            state.devices.values[index].used = now
        }
    }

    /// A value of a characteristic has arrived.
    ///
    /// - Parameters:
    ///   - device: The device.
    ///   - service: The UUID of the service.
    ///   - characteristic: The UUID of the characteristic.
    ///   - text: The value for display: decoded, or hexadecimal digits.
    public func value(_ device: DeviceName, service: String, characteristic: String, text: String) {
        let now = now
        let key = State.ValueKey(device: device, service: service, characteristic: characteristic)
        let text = Self.cut(text, limits.text)
        locked { state in
            state.revision += 1
            if state.values[key] == nil, state.values.count >= limits.values,
                let oldest = state.values.min(by: { $0.value.revision < $1.value.revision })
            {
                state.values[oldest.key] = nil
            }
            state.values[key] = .init(text: text, time: now, revision: state.revision)
        }
    }

    /// The connection to the broker was established, or has ended.
    ///
    /// - Parameter reason: Why there is no connection.
    public func broker(connected: Bool, reason: String? = nil) {
        let now = now
        locked { state in
            if state.brokerConnected != connected { state.brokerSince = now }
            state.brokerConnected = connected
            state.brokerReason = reason.map { Self.cut($0, limits.text) }
        }
    }

    /// The queue of values has changed.
    ///
    /// - Parameters:
    ///   - depth: The number of values that wait now.
    ///   - stored: The number of values stored since the start.
    ///   - acknowledged: The number of values acknowledged since the start.
    ///   - dropped: The number of values that the limits of the store have dropped since the start.
    public func queue(depth: Int, stored: Int, acknowledged: Int, dropped: Int) {
        let now = now
        locked { state in
            (state.depth, state.stored, state.acknowledged, state.dropped) = (depth, stored, acknowledged, dropped)
            state.depths.record(Int32(clamping: depth), step: now / State.step)
        }
    }

    /// A command was refused.
    ///
    /// - Parameters:
    ///   - what: The command.
    ///   - why: The reason, as it was sent in the reply.
    public func refused(_ what: String, why: String) {
        let now = now
        let (what, why) = (Self.cut(what, limits.text), Self.cut(why, limits.text))
        locked { state in
            state.revision += 1
            state.refused += 1
            if state.refusals.count >= limits.refusals { state.refusals.removeFirst() }
            state.refusals.append(
                .init(what: what, why: why, time: now, revision: state.revision, number: state.refused))
        }
    }

    // MARK: - What is held

    /// Returns everything.
    public func snapshot() -> StatusSnapshot { changes(since: nil).snapshot }

    /// Returns what has changed since a mark, and the mark of now.
    ///
    /// - Parameter mark: A mark that this function has returned. Everything is returned if it is `nil`, or so long ago that
    ///   the names of removed devices are no longer known.
    public func changes(since mark: Mark?) -> (snapshot: StatusSnapshot, mark: Mark) {
        let now = now
        let today = Int64((date().timeIntervalSince1970 * 1000).rounded())
        // Values of the state are copied under the lock, which copies no elements; the rest follows without it.
        let state = locked { state in
            state.forget(now: now, limits: limits)
            return state
        }
        let mark = mark.flatMap { $0.revision < state.removalsBegin ? nil : $0 }
        let snapshot = state.snapshot(since: mark, now: now, today: today)
        return (snapshot, Mark(revision: state.revision, step: now / State.step))
    }

    /// Returns the present numbers without the devices.
    public func numbers() -> StatusSnapshot {
        let (now, today) = (now, Int64((date().timeIntervalSince1970 * 1000).rounded()))
        return locked { $0.frame(now: now, today: today) }
    }

    private var now: Int { Self.milliseconds(uptime()) }

    private func locked<Result>(_ body: (inout State) -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body(&state)
    }

    static func milliseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
    }

    /// Returns the text, or its beginning of at most this many bytes and an ellipsis.
    static func cut(_ text: String, _ limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        var rest = ""
        for scalar in text.unicodeScalars {
            guard rest.utf8.count + UTF8.width(scalar) + 3 <= limit else { break }
            rest.unicodeScalars.append(scalar)
        }
        return rest + "…"
    }
}

/// The state of a ``StatusBoard``. Times are milliseconds of its uptime.
private struct State {
    /// The length of a step of a history in milliseconds.
    static let step = 5_000

    struct ValueKey: Hashable {
        var device: DeviceName
        var service: String
        var characteristic: String
    }

    struct Value {
        var text: String
        var time: Int
        var revision: Int
    }

    struct Refusal {
        var what: String
        var why: String
        var time: Int
        var revision: Int
        var number: Int
    }

    let gateway: String
    let version: String
    let broker: String
    let started: Int
    /// Grows with each change of a device, a value or a refusal.
    var revision = 0
    var devices: [DeviceName: Device] = [:]
    var connected = 0
    var reports = 0
    /// Removed devices, with the revisions at which they were removed.
    var removals: [(name: DeviceName, revision: Int)] = []
    /// Removals before this revision are no longer in `removals`.
    var removalsBegin = 0
    var values: [ValueKey: Value] = [:]
    var refusals: [Refusal] = []
    var refused = 0
    var (brokerConnected, brokerSince, brokerReason) = (false, 0, String?.none)
    var (depth, stored, acknowledged, dropped) = (0, 0, 0, 0)
    var depths = SlotHistory<Int32>()

    init(gateway: String, version: String, broker: String, started: Int) {
        (self.gateway, self.version, self.broker, self.started) = (gateway, version, broker, started)
        brokerSince = started
    }

    /// Returns the place of a device, which is added if it is new.
    mutating func index(
        of device: DeviceName, now: Int, limits: StatusBoard.Limits
    ) -> Dictionary<DeviceName, Device>.Index {
        if let index = devices.index(forKey: device) { return index }
        if devices.count >= limits.devices { makeRoom(limits) }
        devices[device] = Device(address: device.address, used: now)
        return devices.index(forKey: device)!  // it was inserted in the line before
    }

    /// Removes a twentieth of the devices, so that devices with ever new addresses do not cause a search each.
    private mutating func makeRoom(_ limits: StatusBoard.Limits) {
        let count = max(limits.devices / 20, 1)
        var order = devices.map { (name: $0.key, hasLink: $0.value.link != .none, used: $0.value.used) }
        order.sort { ($0.hasLink ? 1 : 0, $0.used) < ($1.hasLink ? 1 : 0, $1.used) }
        for entry in order.prefix(count) { remove(entry.name, limits) }
    }

    /// Removes the devices without a link that have been silent for too long.
    mutating func forget(now: Int, limits: StatusBoard.Limits) {
        let begin = now - StatusBoard.milliseconds(limits.silence)
        let silent = devices.filter { $0.value.used < begin && $0.value.link == .none }
        if !silent.isEmpty { revision += 1 }
        for name in silent.keys { remove(name, limits) }
    }

    private mutating func remove(_ name: DeviceName, _ limits: StatusBoard.Limits) {
        if devices.removeValue(forKey: name)?.link == .connected { connected -= 1 }
        removals.append((name, revision))
        guard removals.count > limits.devices else { return }
        let dropped = removals.count / 2
        removalsBegin = removals[dropped - 1].revision
        removals.removeFirst(dropped)
    }

    /// Returns a snapshot that has neither devices nor values nor refusals.
    func frame(now: Int, today: Int64) -> StatusSnapshot {
        StatusSnapshot(
            whole: true, time: today,
            gateway: .init(name: gateway, version: version, started: today - Int64(now - started)),
            broker: .init(
                address: broker, connected: brokerConnected, since: today - Int64(now - brokerSince),
                reason: brokerConnected ? nil : brokerReason),
            queue: .init(
                depth: depth, stored: stored, acknowledged: acknowledged, dropped: dropped,
                history: .init(end: 0, values: [])),
            counts: .init(devices: devices.count, connected: connected, reports: reports, refusals: refused),
            devices: [], removed: [], values: [], refusals: [])
    }

    func snapshot(since mark: StatusBoard.Mark?, now: Int, today: Int64) -> StatusSnapshot {
        let (first, revision) = (mark?.step ?? 0, mark?.revision ?? -1)
        var result = frame(now: now, today: today)
        result.whole = mark == nil
        result.queue.history = depths.history(from: first)
        result.devices.reserveCapacity(mark == nil ? devices.count : 0)
        for (name, device) in devices where device.revision > revision {
            result.devices.append(device.snapshot(name, from: first) { today - Int64(now - $0) })
        }
        if mark != nil {
            // A device that was removed and then found again is among the devices.
            result.removed = removals.lazy.filter { $0.revision > revision && devices[$0.name] == nil }
                .map(\.name.description)
        }
        result.values = values.filter { $0.value.revision > revision }
            .sorted { $0.value.revision < $1.value.revision }
            .map { key, value in
                .init(
                    device: key.device.description, service: key.service, characteristic: key.characteristic,
                    text: value.text, time: today - Int64(now - value.time))
            }
        result.refusals = refusals.filter { $0.revision > revision }
            .map { .init(number: $0.number, time: today - Int64(now - $0.time), what: $0.what, why: $0.why) }
        return result
    }
}

/// A device of a ``StatusBoard``.
private struct Device {
    let address: String
    var name: String?
    /// The smoothed strength; not a number if it is unknown.
    var strength = Float.nan
    var reported: Int?
    /// The time of the last change.
    var used: Int
    var revision = 0
    var link = LinkStatus.none
    var detail: String?
    var readings: [StatusReading] = []
    var strengths = SlotHistory<Int8>()

    init(address: String, used: Int) {
        (self.address, self.used) = (address, used)
    }

    mutating func reported(_ name: String?, _ strength: Int?, _ now: Int, _ revision: Int, _ limits: StatusBoard.Limits)
    {
        if let name, !name.isEmpty {
            let name = StatusBoard.cut(name, limits.text)
            if self.name != name { self.name = name }
        }
        if let strength {
            let number = Float(min(max(strength, -127), 20))
            // Reports vary by several decibels; a quarter of each counts, and all of one after ten seconds of silence.
            let isRecent = reported.map { now - $0 < 10_000 } ?? false
            self.strength = isRecent && !self.strength.isNaN ? self.strength + (number - self.strength) / 4 : number
            strengths.record(Int8(self.strength.rounded()), step: now / State.step)
        }
        (reported, used, self.revision) = (now, now, revision)
    }

    mutating func merge(_ new: [StatusReading], _ revision: Int, _ limits: StatusBoard.Limits) {
        for reading in new {
            var reading = reading
            if case .text(let text) = reading.value { reading.value = .text(StatusBoard.cut(text, limits.text)) }
            if let index = readings.firstIndex(where: { $0.name == reading.name }) {
                readings[index] = reading
            } else if readings.count < limits.readings {
                readings.append(reading)
            }
        }
        self.revision = revision
    }

    func snapshot(_ name: DeviceName, from step: Int, time: (Int) -> Int64) -> StatusSnapshot.Device {
        .init(
            device: name.description, address: address, name: self.name,
            strength: strength.isNaN ? nil : Int(strength.rounded()), reported: reported.map(time), link: link,
            detail: detail, readings: readings, history: strengths.history(from: step))
    }
}
