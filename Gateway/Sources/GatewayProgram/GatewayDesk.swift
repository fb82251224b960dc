import BlueCapCipher
import BlueCapKit
import Foundation
import GatewayCore
import GatewayRadio
import GatewayStore
import Logging

/// What a gateway knows, and what it decides about each event. A value: the orders that it returns are executed by ``Gateway``.
struct GatewayDesk {
    /// What is to be done after an event.
    enum Order {
        case publish(BrokerMessage)
        case store(NewValue, IntakeKey)
        case log(Logger.Level, String)
        case connect(DeviceName, isKept: Bool)
        case disconnect(DeviceName)
    }

    /// How long a broker may acknowledge nothing. It exceeds 7.5 s, after which a broker itself takes a silent gateway to have
    /// ended, so that a pause that brokers allow does not stop the claims. A gateway publishes a claim every 5 s, so that it
    /// finds the broker silent after 13 s at most: before the 15 s are over after which claims count no longer that were not
    /// published again.
    static let silenceLimit: Duration = .seconds(8)

    /// How many different advertisements of a sensor have a throttle of their own.
    private static let turnLimit = 16

    let configuration: GatewayConfiguration
    let topics: Topics
    var retained = RetainedMessages()
    private(set) var claims: ClaimMachine?
    private(set) var homeAssistant: HomeAssistant?
    private(set) var isConnected = false
    /// Whether the broker has acknowledged nothing for ``silenceLimit``, as a node of a cluster without a leader. For the claims
    /// there is no broker then.
    private(set) var isBrokerSilent = false
    private(set) var links: [DeviceName: LinkPayload.State] = [:]
    private(set) var names: [DeviceName: String] = [:]

    private var advertisements: [DeviceName: AdvertisementThrottle] = [:]
    /// By the names in a reading, since many sensors advertise their quantities in turn. `nil` is for readings with events, and
    /// for those of a sensor beyond ``turnLimit``.
    private var readings: [ReadingKey: [Set<String>?: AdvertisementThrottle]] = [:]
    private let sensorDecoders: AdvertisementDecoders
    /// The sensors that have a key.
    private let keyed: Set<BluetoothAddress>
    /// The sensors of which was logged that their readings are not decrypted.
    private var undecrypted: Set<BluetoothAddress> = []
    /// The devices that are to be connected, with those of commands.
    private var wanted: Set<DeviceName> = []
    /// The devices that a command has taken from the configured ones.
    private var unwanted: Set<DeviceName> = []
    private let decoders: [CharacteristicKey: ValueDecoder]
    private let modes: [CharacteristicKey: ValuePayload.Source]
    private var lastTick: Duration = .zero
    private var isScanning: Bool

    private struct ReadingKey: Hashable {
        var device: DeviceName
        /// The format, or the topic of a characteristic's values.
        var kind: String
    }

    private struct CharacteristicKey: Hashable {
        var service: CBUUID
        var characteristic: CBUUID
    }

    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - bindKeys: The keys of sensors, with the cipher; `nil` for none.
    init(
        _ configuration: GatewayConfiguration,
        bindKeys: (keys: [BluetoothAddress: Data], decrypt: BTHomeDecoder.Decryption)? = nil
    ) {
        self.configuration = configuration
        keyed = bindKeys.map { Set($0.keys.keys) } ?? []
        var sensorDecoders = AdvertisementDecoders.standard
        if let bindKeys {
            sensorDecoders.replaceBTHome(with: BTHomeDecoder(keys: bindKeys.keys, decrypt: bindKeys.decrypt))
        }
        self.sensorDecoders = sensorDecoders
        topics = Topics(configuration)
        isScanning = configuration.radio.scan
        if let rules = configuration.claims {
            var options = ClaimOptions()
            options.hysteresis = Double(rules.hysteresis)
            options.leadTime = rules.duration / .seconds(1)
            claims = ClaimMachine(gateway: configuration.name, linkLimit: configuration.limits.links, options: options)
        }
        homeAssistant = configuration.homeAssistant.map {
            HomeAssistant(
                $0, topics: Topics(configuration), deviceLimit: configuration.limits.devices, version: Gateway.version)
        }
        let entries = configuration.peripherals.flatMap(\.characteristics)
        decoders = Dictionary(
            entries.compactMap { entry in
                ValueDecoder(service: entry.service, characteristic: entry.uuid, format: entry.format)
                    .map { (CharacteristicKey(service: entry.service, characteristic: entry.uuid), $0) }
            }, uniquingKeysWith: { first, _ in first })
        modes = Dictionary(
            entries.map { entry in
                let source: ValuePayload.Source = if case .read = entry.mode { .read } else { .notify }
                return (CharacteristicKey(service: entry.service, characteristic: entry.uuid), source)
            }, uniquingKeysWith: { first, _ in first })
    }

    /// The topics to subscribe to.
    var filters: [String] {
        var filters = [topics.command]
        if claims != nil { filters += [topics.claimFilter, topics.stateFilter] }
        if let homeAssistant { filters += homeAssistant.filters.filter { !filters.contains($0) } }
        return filters
    }

    /// The device that a selector names, if it is known.
    func device(_ selector: PeripheralSelector) -> DeviceName? {
        switch selector {
        case .address(let device): device
        case .name(let name): names.filter { $0.value == name }.keys.min()
        }
    }

    /// The decoder of a characteristic's values, as configured or by the library's profile.
    func decoder(_ service: CBUUID, _ characteristic: CBUUID) -> ValueDecoder? {
        decoders[CharacteristicKey(service: service, characteristic: characteristic)]
            ?? ValueDecoder(service: service, characteristic: characteristic)
    }

    // MARK: The radio

    mutating func received(_ report: DeviceReport, at now: Duration) -> (orders: [Order], readings: [ReadingPayload]) {
        let device = report.device
        learn(report.advertisements.localName, of: device)
        var orders: [Order] = []
        let isFollowed = follow(device, report.rssi, at: now, &orders)
        homeAssistant?.handle(
            .sighted(device, name: names[device], rssi: report.rssi), at: now, date: report.date)
        guard
            isFollowed
                || configuration.radio.filter.accepts(
                    device: device, strength: report.rssi, advertisements: report.advertisements)
        else { return (orders, []) }
        let payloads = readings(report, &orders)
        for (reading, occurrence) in payloads
        where admitsReading(reading, reading.format, occurrence, device, at: now) {
            homeAssistant?.handle(.reading(device, reading), at: now, date: report.date)
            orders.append(
                .store(
                    NewValue(device: device, topic: topics.reading(device), time: report.date, body: reading.json),
                    .reading))
        }
        if admitsAdvertisement(report, at: now) {
            let payload = AdvertisementPayload(
                device: device, advertisements: report.advertisements, rssi: report.rssi, time: report.date)
            orders.append(
                .publish(
                    BrokerMessage(
                        topic: topics.advertisement(device), payload: payload.json, quality: .atMostOnce)))
        }
        return (orders, payloads.map(\.payload))
    }

    private mutating func learn(_ name: String?, of device: DeviceName) {
        guard let name, names[device] != name, names.count < configuration.limits.devices || names[device] != nil
        else { return }
        names[device] = name
    }

    /// BlueZ has a link to a device that is not this process's.
    mutating func foreignLink(_ device: DeviceName, name: String?, rssi: Int?, at now: Duration) -> [Order] {
        learn(name, of: device)
        var orders: [Order] = []
        guard isFollowed(device) else { return [] }
        if claims != nil {
            // It is ended: another gateway may have the better claim.
            claim(.linkUp(device), at: now, &orders)
        } else {
            _ = follow(device, rssi, at: now, &orders)
        }
        return orders
    }

    /// The readings of a report, with the number of the occurrence if they are sent when something occurs.
    private mutating func readings(
        _ report: DeviceReport, _ orders: inout [Order]
    ) -> [(payload: ReadingPayload, occurrence: UInt32?)] {
        let address = BluetoothAddress(report.device.address)
        let decoded = report.advertisements.sensorReadings(address: address, decoders: sensorDecoders)
        if let encrypted = decoded.first(where: { $0.isEncrypted && $0.format == "bthome_v2" }),
            let order = requestKey(of: encrypted.address ?? address)
        {
            orders.append(order)
        }
        return decoded.filter { !$0.isEncrypted }.map { reading in
            let payload = ReadingPayload(
                format: reading.format, rssi: report.rssi,
                readings: reading.values.compactMap { value in
                    let content: PayloadValue? =
                        switch value.value {
                        case .number(let number): PayloadValue(number)
                        case .flag(let flag): .flag(flag)
                        case .text(let text): PayloadValue(text)
                        }
                    return content.map { .init(value.name, $0, unit: value.unit) }
                })
            return (payload, reading.isTriggerBased ? reading.sequenceNumber : nil)
        }
    }

    /// Logs once of a sensor what its readings need.
    private mutating func requestKey(of address: BluetoothAddress?) -> Order? {
        guard let address, undecrypted.count < configuration.limits.devices, undecrypted.insert(address).inserted
        else { return nil }
        return keyed.contains(address)
            ? .log(
                .warning,
                "the key of \(address) in radio.bindKeysFile does not decrypt its readings; the sensor has another one")
            : .log(
                .notice,
                "the readings of \(address) are encrypted; to publish them, add its address and key to radio.bindKeysFile"
            )
    }

    private mutating func admitsReading(
        _ reading: ReadingPayload, _ kind: String, _ occurrence: UInt32?, _ device: DeviceName, at now: Duration
    ) -> Bool {
        let key = ReadingKey(device: device, kind: kind)
        if readings[key] == nil, readings.count >= configuration.limits.devices { readings.removeAll() }
        let names = Set(reading.readings.keys)
        let isBeyond = readings[key].map { $0[names] == nil && $0.count >= Self.turnLimit } ?? false
        let turn = reading.hasEvent || isBeyond ? nil : names
        // An event has ended when a reading has none: the same one is then another.
        if !reading.hasEvent { readings[key]?[nil]?.forget() }
        var hasher = Hasher()
        hasher.combine(reading.readings)
        hasher.combine(occurrence)
        return readings[key, default: [:]][turn, default: AdvertisementThrottle()].admits(
            at: now, strength: nil, fingerprint: hasher.finalize(), options: configuration.radio.throttle)
    }

    private mutating func admitsAdvertisement(_ report: DeviceReport, at now: Duration) -> Bool {
        if advertisements[report.device] == nil, advertisements.count >= configuration.limits.devices {
            advertisements.removeAll()
        }
        var hasher = Hasher()
        hasher.combine(report.advertisements.localName)
        hasher.combine(report.advertisements.manufacturerDataByCompany)
        hasher.combine(report.advertisements.serviceUUIDs)
        hasher.combine(report.advertisements.serviceData)
        return advertisements[report.device, default: AdvertisementThrottle()].admits(
            at: now, strength: report.rssi, fingerprint: hasher.finalize(), options: configuration.radio.throttle)
    }

    /// Connects a configured device, or passes its strength to the claims. Returns whether the device is one.
    private mutating func follow(
        _ device: DeviceName, _ rssi: Int?, at now: Duration, _ orders: inout [Order]
    ) -> Bool {
        guard isFollowed(device) else { return false }
        guard !unwanted.contains(device) else { return true }
        if claims != nil {
            if let rssi { claim(.sighting(device, strength: Double(rssi)), at: now, &orders) }
        } else if links[device] == nil, wanted.contains(device) || links.count < configuration.limits.links {
            links[device] = .connecting
            orders.append(.connect(device, isKept: true))
        }
        return true
    }

    /// Whether the device is to be connected, by the configuration or by a command.
    private func isFollowed(_ device: DeviceName) -> Bool {
        let name = names[device]
        return wanted.contains(device)
            || configuration.peripherals.contains { $0.connect && $0.selector.selects(device, name: name) }
    }

    mutating func link(_ device: DeviceName, _ change: LinkChange, date: Date, at now: Duration) -> [Order] {
        var orders: [Order] = []
        var reason: String?
        let state: LinkPayload.State
        switch change {
        case .connecting: state = .connecting
        case .connected: state = .connected
        case .lost(let text), .failed(let text): (state, reason) = (.connecting, text)
        case .ended: state = .disconnected
        }
        links[device] = state == .disconnected ? nil : state
        let payload = LinkPayload(device: device, name: names[device], state: state, reason: reason, time: date)
        retained.set(topics.link(device), payload.json)
        if isConnected { retained.set(topics.state, self.state(.online, date: date).json) }
        homeAssistant?.handle(
            .link(device, name: names[device], isConnected: state == .connected), at: now, date: date)
        switch change {
        case .connected: claim(.linkUp(device), at: now, &orders)
        case .ended: claim(.linkDown(device), at: now, &orders)
        case .connecting, .lost, .failed: break
        }
        return orders
    }

    /// There was no link to end.
    mutating func hadNoLink(_ device: DeviceName, at now: Duration) -> [Order] {
        var orders: [Order] = []
        links[device] = nil
        claim(.linkDown(device), at: now, &orders)
        return orders
    }

    mutating func value(
        _ device: DeviceName, _ identifier: CharacteristicIdentifier, _ data: Data, date: Date, at now: Duration
    ) -> Order? {
        guard let service = identifier.service.uuid, let characteristic = identifier.uuid else { return nil }
        let source = modes[CharacteristicKey(service: service, characteristic: characteristic)] ?? .notify
        let payload = ValuePayload(data, source: source, decoder: decoder(service, characteristic))
        let topic = topics.value(device, service: service, characteristic: characteristic)
        if homeAssistant != nil {
            let reading = ReadingPayload(payload, of: characteristic)
            if !reading.readings.isEmpty, admitsReading(reading, topic, nil, device, at: now) {
                homeAssistant?.handle(.reading(device, reading), at: now, date: date)
            }
        }
        return .store(
            NewValue(device: device, topic: topic, time: date, body: payload.json),
            .value(device, service: service, characteristic: characteristic))
    }

    func gap(
        _ device: DeviceName, _ service: CBUUID, _ characteristic: CBUUID, _ reason: GapPayload.Reason, _ date: Date
    ) -> NewValue {
        let topic = topics.gap(device, service: service, characteristic: characteristic)
        return NewValue(device: device, topic: topic, time: date, body: GapPayload(reason: reason).json)
    }

    // MARK: The broker

    mutating func brokerConnected(date: Date, at now: Duration) -> [Order] {
        (isConnected, isBrokerSilent) = (true, false)
        retained.set(topics.state, state(.online, date: date).json)
        retained.connected()
        homeAssistant?.handle(.connected, at: now, date: date)
        var orders: [Order] = []
        claim(.brokerConnected, at: now, &orders)
        return orders
    }

    mutating func brokerDisconnected(date: Date, at now: Duration) -> [Order] {
        (isConnected, isBrokerSilent) = (false, false)
        homeAssistant?.handle(.disconnected, at: now, date: date)
        var orders: [Order] = []
        claim(.brokerDisconnected, at: now, &orders)
        return orders
    }

    /// Takes a message that is no command.
    mutating func received(_ message: BrokerMessage, date: Date, at now: Duration) -> [Order] {
        homeAssistant?.handle(.received(message), at: now, date: date)
        var orders: [Order] = []
        switch topics.received(message.topic) {
        case .claim(let device, let gateway)?:
            // A claim that cannot be read counts as none, as in the other gateways.
            let received = message.payload.isEmpty ? nil : try? Claim.decode(message.payload)
            claim(.claim(device, gateway: gateway, received), at: now, &orders)
        case .state(let gateway)?:
            guard let state = try? JSONDecoder().decode(GatewayStatePayload.self, from: message.payload) else { break }
            claim(.gateway(gateway, isOnline: state.state == .online), at: now, &orders)
        case .command?, .device?, nil: break
        }
        return orders
    }

    /// The state of this gateway, and its will.
    func state(_ state: GatewayStatePayload.State, date: Date) -> GatewayStatePayload {
        guard state == .online else {
            return GatewayStatePayload(state: state, gateway: topics.gateway, version: Gateway.version, time: date)
        }
        return GatewayStatePayload(
            state: state, gateway: topics.gateway, version: Gateway.version, scanning: isScanning,
            links: links.count { $0.value == .connected }, time: date)
    }

    // MARK: Time and commands

    /// - Parameter silence: For how long the broker has acknowledged nothing while a message waits.
    mutating func tick(silence: Duration, date: Date, at now: Duration) -> [Order] {
        var orders: [Order] = []
        if isConnected, isBrokerSilent != (silence >= Self.silenceLimit) {
            isBrokerSilent.toggle()
            claim(isBrokerSilent ? .brokerDisconnected : .brokerConnected, at: now, &orders)
        }
        if let wake = claims?.nextWake, wake <= now / .seconds(1) { claim(.time, at: now, &orders) }
        if now - lastTick >= .seconds(1) {
            lastTick = now
            homeAssistant?.handle(.tick, at: now, date: date)
        }
        return orders
    }

    /// Publishes what Home Assistant has to receive, until the transport takes no more.
    mutating func flushHomeAssistant(at now: Duration, _ publish: (BrokerMessage) throws -> Void) {
        guard isConnected, let pending = homeAssistant?.pending(limit: 20, at: now) else { return }
        for message in pending {
            guard (try? publish(message.message)) != nil else { return }
            homeAssistant?.sent(message, at: now)
        }
    }

    /// Whether another gateway has the link to a device, or is about to have it.
    func isElsewhere(_ device: DeviceName) -> Bool { claims?.holder(of: device) != nil && links[device] == nil }

    mutating func want(_ device: DeviceName, at now: Duration) -> [Order] {
        wanted.insert(device)
        unwanted.remove(device)
        var orders: [Order] = []
        if claims != nil {
            claim(.permitted(device, true), at: now, &orders)
        } else if links[device] == nil {
            links[device] = .connecting
            orders.append(.connect(device, isKept: true))
        }
        return orders
    }

    mutating func doNotWant(_ device: DeviceName, at now: Duration) -> [Order] {
        wanted.remove(device)
        unwanted.insert(device)
        var orders: [Order] = []
        if claims == nil { orders.append(.disconnect(device)) }
        claim(.permitted(device, false), at: now, &orders)
        return orders
    }

    mutating func setScanning(_ isOn: Bool, date: Date) {
        isScanning = isOn
        retained.set(topics.state, state(.online, date: date).json)
    }

    // MARK: Claims

    private mutating func claim(_ event: ClaimMachine.Event, at now: Duration, _ orders: inout [Order]) {
        guard let decided = claims?.handle(event, at: now / .seconds(1)) else { return }
        for order in decided {
            switch order {
            case .publish(let device, let claim):
                orders.append(
                    .publish(
                        BrokerMessage(
                            topic: topics.claim(device, of: topics.gateway), payload: claim.payload, isRetained: true)))
            case .remove(let device):
                orders.append(
                    .publish(
                        BrokerMessage(
                            topic: topics.claim(device, of: topics.gateway), payload: Data(), isRetained: true)))
            case .connect(let device): orders.append(.connect(device, isKept: false))
            case .disconnect(let device): orders.append(.disconnect(device))
            case .announce: retained.connected()
            }
        }
    }
}

/// What is missing if the intake is full.
enum IntakeKey: Hashable, Sendable {
    case value(DeviceName, service: CBUUID, characteristic: CBUUID)
    /// A reading: the next one follows.
    case reading
}
