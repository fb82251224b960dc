public import Foundation

/// What a gateway publishes for Home Assistant: a value that receives events and has the messages that they require.
///
/// Each sensor is one device in Home Assistant, however many gateways receive it: the discovery messages and the topic of the
/// state, ``Topics/device(_:)``, have no gateway in their names. One gateway, the *reporter*, publishes them. Its messages have a
/// term. Another gateway becomes the reporter by publishing the next term, if it receives the device and
/// - there is no reporter, or the reporter is offline, has not received the device for
///   ``GatewayConfiguration/HomeAssistantOptions/absentAfter``, or has published nothing for that time, or
/// - it has a link to the device, and the reporter has none, or
/// - it has received the device by ``hysteresis`` better than the reporter for ``leadTime``, and the reporter has no link.
///
/// All gateways consider as the reporter the one with the highest term, and of several with one term the first by name,
/// whatever the order in which messages arrive. A reporter that receives a message of an earlier reporter, which was under way
/// when the term began, publishes its own again.
///
/// The discovery messages refer to the reporter's state, so that the entities are unavailable while it is offline; the
/// next reporter replaces them. It does so ``settlingTime`` after its term has begun, and again after ``repetitionTime``, since
/// those of the last reporter may have been under way.
///
/// Only devices with decoded readings or with a configured link are published. Events such as pressed buttons are not: a
/// retained message would repeat them. They are on ``Topics/reading(_:)``.
///
/// The main loop passes events to ``handle(_:at:date:)``, calls it with ``Event/tick`` each second, and publishes:
///
/// ```swift
/// for message in homeAssistant.pending(limit: 20, at: now) {
///     do { try transport.publish(message.message, token: token) } catch { break }
///     homeAssistant.sent(message, at: now)
/// }
/// ```
public struct HomeAssistant: Sendable {
    /// By how many decibels another gateway must receive a device better to become its reporter.
    public static let hysteresis = 6.0
    /// For how long the other gateway must receive it better.
    public static let leadTime = Duration.seconds(10)
    /// The time after a connection to the broker before anything is published: the retained messages arrive in it.
    public static let settlingTime = Duration.seconds(2)
    /// The time after which a new reporter publishes its discovery messages for the second time.
    public static let repetitionTime = Duration.seconds(30)
    /// The time after the first connection before a device is removed: a device that is there is received in it.
    public static let removalDelay = Duration.seconds(600)
    /// The largest received message in bytes.
    public static let sizeLimit = 16_384

    /// What occurs.
    public enum Event: Sendable {
        /// The broker has accepted a connection.
        case connected
        /// The connection has ended.
        case disconnected
        /// A device was received: its name, and its strength in dBm.
        case sighted(DeviceName, name: String?, rssi: Int?)
        /// Readings were decoded, of an advertisement or of a characteristic's value.
        case reading(DeviceName, ReadingPayload)
        /// The link of a configured peripheral is up or down.
        case link(DeviceName, name: String?, isConnected: Bool)
        /// A message has arrived. Those that are for other parts are ignored.
        case received(BrokerMessage)
        /// Time has passed.
        case tick
    }

    /// A message that is to be published.
    public struct Pending: Hashable, Sendable {
        /// The message: retained, with quality 1.
        public let message: BrokerMessage
        fileprivate let device: DeviceName
        fileprivate let item: Item
        fileprivate let revision: UInt64
    }

    fileprivate enum Item: Hashable, Sendable {
        case entity(HomeAssistantEntity)
        case state
    }

    /// How many readings, links and messages of further devices were ignored because there were as many devices as allowed.
    public private(set) var ignored = 0

    private let topics: Topics
    private let options: GatewayConfiguration.HomeAssistantOptions
    private let deviceLimit: Int
    private let version: String
    private var records: [DeviceName: Record] = [:]
    private var isOnline: [String: Bool] = [:]
    private var connectedAt: Duration?
    private var firstConnectedAt: Duration?
    private var queue: [DeviceName] = []
    private var queued: Set<DeviceName> = []

    /// Creates the value.
    ///
    /// - Parameters:
    ///   - options: The prefix and times.
    ///   - topics: The gateway's topics.
    ///   - deviceLimit: The largest number of devices that are published.
    ///   - version: The gateway's version.
    public init(
        _ options: GatewayConfiguration.HomeAssistantOptions, topics: Topics, deviceLimit: Int, version: String
    ) {
        (self.options, self.topics, self.deviceLimit, self.version) = (options, topics, deviceLimit, version)
    }

    /// The filters to subscribe to.
    public var filters: [String] { [topics.deviceFilter, topics.stateFilter] }

    /// The number of devices that are known, also from other gateways.
    public var count: Int { records.count }

    /// Whether this gateway is the reporter of a device.
    public func reports(_ device: DeviceName) -> Bool { records[device]?.reporter?.gateway == topics.gateway }

    // MARK: Events

    /// Takes an event.
    ///
    /// - Parameters:
    ///   - event: What has occurred.
    ///   - now: The time on a clock that does not run backwards.
    ///   - date: The time of the wall clock, which is used for payloads, and for the age of retained messages.
    public mutating func handle(_ event: Event, at now: Duration, date: Date) {
        switch event {
        case .connected:
            connectedAt = now
            firstConnectedAt = firstConnectedAt ?? now
            for device in records.keys {
                records[device]?.beginTerm(at: now)
                records[device]?.isChanged = true
                enqueue(device)
            }
        case .disconnected: connectedAt = nil
        case .sighted(let device, let name, let rssi):
            guard records[device] != nil else { return }
            update(device, at: now, date) { $0.sighted(name, rssi, at: now) }
        case .reading(let device, let payload):
            guard prepare(device) else { return }
            update(device, at: now, date) { $0.add(payload, at: now) }
        case .link(let device, let name, let isConnected):
            guard prepare(device) else { return }
            update(device, at: now, date) { $0.setLink(name, isConnected, at: now) }
        case .received(let message): receive(message, at: now, date)
        case .tick:
            for device in records.keys { update(device, at: now, date) { _ in } }
        }
    }

    private mutating func prepare(_ device: DeviceName) -> Bool {
        guard records[device] == nil else { return true }
        guard records.count < deviceLimit else {
            ignored += 1
            return false
        }
        records[device] = Record()
        return true
    }

    private mutating func update(_ device: DeviceName, at now: Duration, _ date: Date, _ body: (inout Record) -> Void) {
        guard var record = records[device] else { return }
        body(&record)
        if record.isLinked == true { record.heardAt = now }
        if let heardAt = record.heardAt {
            record.isPresent = now - heardAt < options.absentAfter
            // The last report by the wall clock of now, so that a step of that clock makes no age.
            record.lastHeard = max(record.lastHeard ?? heardAt, heardAt)
        } else if record.reporter?.gateway == topics.gateway {
            // After a restart: the device is shown as before until it was not received for the time.
            record.isPresent = record.isPresent && now - (firstConnectedAt ?? now) < options.absentAfter
        }
        if isSettled(at: now) { decide(device, &record, at: now) }
        let isOwn = record.reporter?.gateway == topics.gateway
        if isOwn { record.repeatAnnouncements(at: now) }
        if isOwn, record.needsState(at: now, heartbeat: options.absentAfter / 3) {
            record.isChanged = true
            record.revision += 1
        }
        record.date = record.lastHeard.map { date.addingTimeInterval(-((now - $0) / .seconds(1))) } ?? date
        records[device] = record
        if record.isRemoved || isOwn && (record.isChanged || !record.missing.isEmpty) { enqueue(device) }
    }

    private func isSettled(at now: Duration) -> Bool { connectedAt.map { now - $0 >= Self.settlingTime } ?? false }

    /// Decides whether this gateway becomes the reporter, and whether the device is removed.
    private func decide(_ device: DeviceName, _ record: inout Record, at now: Duration) {
        let isOwn = record.reporter?.gateway == topics.gateway
        if let last = record.lastHeard, let firstConnectedAt, now - firstConnectedAt >= Self.removalDelay,
            now - last > options.removeAfter, isOwn || !isReporterAlive(record, at: now)
        {
            record.isRemoved = true
            return
        }
        guard !isOwn, record.isPresent, record.heardAt != nil, !record.isRemoved else {
            record.leadSince = nil
            return
        }
        let mustTake: Bool
        if let reporter = record.reporter, isReporterAlive(record, at: now) {
            let isRecent = now - record.strengthAt <= Self.leadTime * 3
            let lead = record.strength.map { own in reporter.rssi.map { own - Double($0) } ?? .infinity } ?? -.infinity
            if isRecent, lead >= Self.hysteresis {
                record.leadSince = record.leadSince ?? now
            } else {
                record.leadSince = nil
            }
            let hasLed = record.leadSince.map { now - $0 >= Self.leadTime } ?? false
            mustTake = !reporter.isLinked && (record.isLinked == true || hasLed)
        } else {
            mustTake = true
        }
        guard mustTake else { return }
        record.reporter = Reporter(
            gateway: topics.gateway, term: (record.reporter?.term ?? 0) + 1, rssi: nil, isLinked: false,
            isPresent: true,
            receivedAt: now)
        record.beginTerm(at: now)
        (record.isChanged, record.leadSince) = (true, nil)
    }

    /// Whether the reporter is online, receives the device and has published within the time.
    private func isReporterAlive(_ record: Record, at now: Duration) -> Bool {
        guard let reporter = record.reporter else { return false }
        return isOnline[reporter.gateway] != false && reporter.isPresent
            && now - reporter.receivedAt < options.absentAfter
    }

    private mutating func receive(_ message: BrokerMessage, at now: Duration, _ date: Date) {
        switch topics.received(message.topic) {
        case .state(let gateway):
            guard gateway != topics.gateway, isOnline[gateway] != nil || isOnline.count < 1_000 else { return }
            guard !message.payload.isEmpty else {
                isOnline[gateway] = nil
                return
            }
            guard message.payload.count <= Self.sizeLimit,
                let state = try? JSONDecoder().decode(GatewayStatePayload.self, from: message.payload)
            else { return }
            isOnline[gateway] = state.state == .online
        case .device(let device):
            guard !message.payload.isEmpty else {
                forget(device)
                return
            }
            guard message.payload.count <= Self.sizeLimit,
                let payload = try? JSONDecoder().decode(DevicePayload.self, from: message.payload),
                (1...DevicePayload.termLimit).contains(payload.term), prepare(device)
            else { return }
            let own = topics.gateway
            update(device, at: now, date) { $0.receive(payload, at: now, date, own: own) }
        default: break
        }
    }

    // Another gateway has removed the device, or this one has.
    private mutating func forget(_ device: DeviceName) {
        guard let record = records[device] else { return }
        guard record.heardAt != nil, record.isPresent, !record.isRemoved else {
            records[device] = nil
            return
        }
        records[device]?.reporter = nil
    }

    // MARK: Messages

    /// Returns the messages that are due, the oldest first.
    ///
    /// - Parameters:
    ///   - limit: The largest number.
    ///   - now: The time of the events' clock.
    public mutating func pending(limit: Int, at now: Duration) -> [Pending] {
        guard isSettled(at: now) else { return [] }
        var result: [Pending] = []
        var done = 0
        for device in queue {
            guard result.count < limit else { break }
            let messages = records[device].map { self.messages(of: device, $0) } ?? []
            result.append(contentsOf: messages.prefix(limit - result.count))
            // Only devices without work at the front leave the queue; the others stay until `sent` was called.
            if messages.isEmpty, result.isEmpty { done += 1 }
        }
        for device in queue.prefix(done) { queued.remove(device) }
        queue.removeFirst(done)
        return result
    }

    /// Marks a message as published. Messages that are not marked are returned again.
    public mutating func sent(_ pending: Pending, at now: Duration) {
        guard let record = records[pending.device] else { return }
        switch pending.item {
        case .entity(let entity):
            if record.isRemoved {
                records[pending.device]?.entities.remove(entity)
            } else {
                records[pending.device]?.announced.insert(entity)
            }
        case .state:
            guard !record.isRemoved else {
                records[pending.device] = nil
                return
            }
            records[pending.device]?.published = (record.roundedStrength, record.isLinked, now)
            if pending.revision == record.revision { records[pending.device]?.isChanged = false }
        }
    }

    private mutating func enqueue(_ device: DeviceName) {
        if queued.insert(device).inserted { queue.append(device) }
    }

    private func messages(of device: DeviceName, _ record: Record) -> [Pending] {
        func pending(_ topic: String, _ payload: Data, _ item: Item) -> Pending {
            Pending(
                message: BrokerMessage(topic: topic, payload: payload, quality: .atLeastOnce, isRetained: true),
                device: device, item: item, revision: record.revision)
        }
        func topic(_ entity: HomeAssistantEntity) -> String {
            "\(options.prefix)/\(entity.component)/bluecap_\(device)/\(entity.object)/config"
        }
        if record.isRemoved {
            return record.entities.sorted().map { pending(topic($0), Data(), .entity($0)) }
                + [pending(topics.device(device), Data(), .state)]
        }
        guard let reporter = record.reporter, reporter.gateway == topics.gateway else { return [] }
        let discovery = record.missing.sorted().map { entity in
            pending(
                topic(entity),
                entity.discovery(
                    device, name: record.name, unit: record.units[entity.object], topics: topics, version: version),
                .entity(entity))
        }
        guard record.isChanged else { return discovery }
        let payload = DevicePayload(
            time: PayloadTime.text(record.date), address: device.address, name: record.name, gateway: topics.gateway,
            term: reporter.term,
            rssi: record.roundedStrength, present: record.isPresent, linked: record.isLinked, readings: record.readings,
            units: record.units, entities: record.entities.sorted().map(\.description))
        // The state comes first: it lists the discovery messages, so that the next reporter can remove them.
        return [pending(topics.device(device), payload.json, .state)] + discovery
    }
}

/// The reporter of a device.
private struct Reporter: Sendable {
    var gateway: String
    var term: Int
    var rssi: Int?
    var isLinked: Bool
    var isPresent: Bool
    var receivedAt: Duration

    /// Whether a message of this reporter counts, and not one of the other.
    func precedes(_ other: Reporter) -> Bool {
        term != other.term ? term > other.term : gateway < other.gateway
    }
}

/// What is known of one device.
private struct Record: Sendable {
    var name: String?
    /// The smoothed strength, and when it was last updated.
    var strength: Double?
    var strengthAt = Duration.zero
    /// When this gateway last received the device.
    var heardAt: Duration?
    /// When any gateway did.
    var lastHeard: Duration?
    /// The time of `lastHeard` by the wall clock.
    var date = Date(timeIntervalSince1970: 0)
    var isLinked: Bool?
    var isPresent = false
    var readings: [String: PayloadValue] = [:]
    var units: [String: String] = [:]
    var entities: Set<HomeAssistantEntity> = []
    /// When the term of this gateway as the reporter, or its connection, has begun.
    private var termBegan = Duration.zero
    /// How often all discovery messages were due since then.
    private var rounds = 0
    /// The entities whose discovery messages were published since the last time that all were due.
    var announced: Set<HomeAssistantEntity> = []
    var reporter: Reporter?
    var leadSince: Duration?
    var isChanged = false
    var isRemoved = false
    /// Grows with each change, so that a change during a publication is not marked as published.
    var revision: UInt64 = 0
    var published: (rssi: Int?, isLinked: Bool?, time: Duration)?
    /// The presence that the newest message had.
    private var wasPresent = false

    var roundedStrength: Int? { strength.map { Int($0.rounded()) } }

    /// The entities without a discovery message.
    var missing: Set<HomeAssistantEntity> { rounds > 0 ? entities.subtracting(announced) : [] }

    /// Takes the time at which this gateway has become the reporter, or is connected again.
    mutating func beginTerm(at now: Duration) { (termBegan, rounds, announced) = (now, 0, []) }

    /// Publishes all discovery messages again when it is time.
    mutating func repeatAnnouncements(at now: Duration) {
        let due = [HomeAssistant.settlingTime, HomeAssistant.repetitionTime].filter { now - termBegan >= $0 }.count
        guard due > rounds else { return }
        (rounds, announced) = (due, [])
    }

    mutating func sighted(_ name: String?, _ rssi: Int?, at now: Duration) {
        setName(name)
        heardAt = now
        isRemoved = false
        guard let rssi else { return }
        // Exponential smoothing with a time constant of 5 s.
        let elapsed = (now - strengthAt) / .seconds(1)
        let weight = strength == nil || elapsed > 60 ? 1 : 1 - exp(-max(elapsed, 0.1) / 5)
        strength = (strength ?? 0) * (1 - weight) + Double(min(max(rssi, -127), 20)) * weight
        strengthAt = now
    }

    mutating func add(_ payload: ReadingPayload, at now: Duration) {
        sighted(nil, payload.rssi, at: now)
        for (name, value) in payload.readings {
            guard let entity = HomeAssistantEntity(reading: name, value) else { continue }
            guard entities.contains(entity) || entities.count < ReadingPayload.limit else { continue }
            if readings[name] != value { isChanged = true }
            (readings[name], units[name]) = (value, payload.units?[name])
            entities.formUnion([entity, .strength, .received])
        }
    }

    mutating func setLink(_ name: String?, _ isConnected: Bool, at now: Duration) {
        setName(name)
        if isLinked != isConnected { isChanged = true }
        // The end of a link is a report as well: the device was there.
        if isConnected || isLinked == true { heardAt = now }
        isLinked = isConnected
        isRemoved = false
        entities.formUnion([.received, .link])
    }

    mutating func receive(_ payload: DevicePayload, at now: Duration, _ date: Date, own: String) {
        let isNew = reporter == nil && heardAt == nil
        let isOwn = payload.gateway == own
        let sender = Reporter(
            gateway: payload.gateway, term: payload.term, rssi: payload.rssi, isLinked: payload.linked ?? false,
            isPresent: payload.present, receivedAt: now)
        if let reporter, reporter.precedes(sender) {
            // It was under way when the term began: the broker must keep the reporter's.
            if reporter.gateway == own, !isOwn { isChanged = true }
        } else {
            // A term of an earlier process of this gateway continues.
            if isOwn, reporter?.term != sender.term { beginTerm(at: now) }
            reporter = sender
        }
        // A time of the wall clock in the future is taken for now.
        let age = PayloadTime.date(payload.time).map { max(date.timeIntervalSince($0), 0) } ?? 0
        let heard = now - .seconds(min(age, 3_650 * 86_400))
        lastHeard = max(lastHeard ?? heard, heard)
        entities.formUnion(payload.entities.prefix(ReadingPayload.limit + 3).compactMap { HomeAssistantEntity($0) })
        if name == nil { setName(payload.name) }
        if isNew { isPresent = payload.present }
        for (name, value) in payload.readings.prefix(ReadingPayload.limit)
        where ReadingPayload.isName(name) && (readings[name] == nil || !isOwn) {
            readings[name] = value
            units[name] = payload.units[name].map { String($0.prefix(16)) }
        }
    }

    /// Whether the state is to be published.
    mutating func needsState(at now: Duration, heartbeat: Duration) -> Bool {
        if isPresent != wasPresent { (isChanged, wasPresent) = (true, isPresent) }
        guard !isChanged, let published else { return true }
        let elapsed = now - published.time
        let change = roundedStrength.flatMap { new in published.rssi.map { abs(new - $0) } } ?? 0
        return isPresent && elapsed >= heartbeat || elapsed >= .seconds(10) && change >= 3
    }

    private mutating func setName(_ text: String?) {
        guard let text = PayloadText.name(text), text != name else { return }
        name = text
        (isChanged, announced) = (true, [])
    }
}
