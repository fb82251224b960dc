import Foundation

/// An entity of a device in Home Assistant: one discovery message.
struct HomeAssistantEntity: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// `sensor` or `binary_sensor`.
    let component: String
    /// The last part of the identifier: the name of a reading, or `signal_strength`, `received` or `link`.
    let object: String

    static let strength = HomeAssistantEntity(component: "sensor", object: "signal_strength")
    static let received = HomeAssistantEntity(component: "binary_sensor", object: "received")
    static let link = HomeAssistantEntity(component: "binary_sensor", object: "link")

    private init(component: String, object: String) { (self.component, self.object) = (component, object) }

    /// Creates the entity of a reading; `nil` for events, since a retained message would repeat them, and for names that the
    /// gateway's own entities have.
    init?(reading name: String, _ value: PayloadValue) {
        guard ReadingPayload.isName(name), ![Self.strength, .received, .link].map(\.object).contains(name),
            !Self.isEvent(name)
        else { return nil }
        object = name
        if case .flag = value { component = "binary_sensor" } else { component = "sensor" }
    }

    /// Reads `component/object`.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, ["sensor", "binary_sensor"].contains(parts[0]), ReadingPayload.isName(parts[1]) else {
            return nil
        }
        (component, object) = (parts[0], parts[1])
    }

    var description: String { "\(component)/\(object)" }

    static func < (one: HomeAssistantEntity, other: HomeAssistantEntity) -> Bool {
        (one.component, one.object) < (other.component, other.object)
    }

    /// Whether the reading of a name is an event.
    static func isEvent(_ name: String) -> Bool { events.contains(quantity(of: name)) }

    private static let events: Set<String> = ["button", "dimmer", "dimmer_steps", "command", "command_steps"]

    /// The quantity of a reading's name: `temperature` of `temperature_2`, and `pm2_5` of `pm2_5`.
    private static func quantity(of name: String) -> String {
        guard sensors[name] == nil, let mark = name.lastIndex(of: "_"), Int(name[name.index(after: mark)...]) != nil
        else {
            return name
        }
        return String(name[..<mark])
    }

    // MARK: Discovery messages

    /// Returns the discovery message's payload.
    ///
    /// - Parameters:
    ///   - device: The device.
    ///   - name: Its name.
    ///   - unit: The unit of the reading.
    ///   - topics: The topics of the reporter.
    ///   - version: The gateway's version.
    func discovery(_ device: DeviceName, name: String?, unit: String?, topics: Topics, version: String) -> Data {
        let gateway = Discovery.Availability(
            topic: topics.state, template: "{{ value_json.state }}", available: "online", notAvailable: "offline")
        let present = Discovery.Availability(
            topic: topics.device(device), template: "{{ 'online' if value_json.present else 'offline' }}",
            available: "online", notAvailable: "offline")
        var discovery = Discovery(
            name: title, uniqueID: "bluecap_\(device)_\(object)", stateTopic: topics.device(device),
            valueTemplate: "{{ value_json.readings.\(object) | default(none) }}",
            availability: self == .received ? [gateway] : [gateway, present],
            device: .init(
                identifiers: ["bluecap_\(device)"], connections: [["bluetooth", device.address]],
                name: name ?? "Bluetooth \(device.address)"),
            origin: .init(name: "BlueCap gateway", version: version))
        switch self {
        case .strength:
            discovery.valueTemplate = "{{ value_json.rssi | default(none) }}"
            (discovery.deviceClass, discovery.unit, discovery.stateClass) = ("signal_strength", "dBm", "measurement")
            discovery.category = "diagnostic"
        case .received, .link:
            let member = self == .link ? "linked" : "present"
            discovery.valueTemplate = "{{ 'ON' if value_json.\(member) | default(false) else 'OFF' }}"
            (discovery.deviceClass, discovery.category) = ("connectivity", "diagnostic")
        default: complete(&discovery, unit: unit)
        }
        return discovery.json
    }

    private func complete(_ discovery: inout Discovery, unit: String?) {
        let quantity = Self.quantity(of: object)
        guard component == "sensor" else {
            discovery.deviceClass = Self.flags[quantity]
            // Home Assistant's class has the opposite meaning: its state `on` is unsafe.
            let (on, off) = quantity == "safety" ? ("OFF", "ON") : ("ON", "OFF")
            discovery.valueTemplate = "{{ '\(on)' if value_json.readings.\(object) else '\(off)' }}"
            return
        }
        if Self.diagnostics.contains(quantity) { discovery.category = "diagnostic" }
        guard !Self.texts.contains(quantity) else { return }
        if quantity == "timestamp" {
            discovery.deviceClass = "timestamp"
            discovery.valueTemplate = "{{ value_json.readings.\(object) | as_datetime }}"
            return
        }
        discovery.unit = unit
        discovery.stateClass = "measurement"
        guard let row = Self.sensors[quantity], row.units.contains(unit ?? "") else { return }
        (discovery.deviceClass, discovery.stateClass) = (row.deviceClass, row.stateClass)
    }

    private var title: String {
        switch self {
        case .strength: return "Signal strength"
        case .received: return "Received"
        case .link: return "Link"
        default: break
        }
        let quantity = Self.quantity(of: object)
        let number = object.dropFirst(quantity.count + 1)
        let words = Self.titles[quantity] ?? quantity.replacing("_", with: " ")
        return words.prefix(1).uppercased() + words.dropFirst() + (number.isEmpty ? "" : " \(number)")
    }

    // MARK: Tables

    /// A class of Home Assistant, the units that it allows, and its state class.
    private struct Row {
        var deviceClass: String
        var units: [String]
        var stateClass = "measurement"
    }

    private static let titles = [
        "co2": "CO₂", "pm2_5": "PM2.5", "pm10": "PM10", "tvoc": "Volatile organic compounds", "uv_index": "UV index",
        "dewpoint": "Dew point", "device_type_id": "Device type", "tx_power": "Transmission power",
    ]

    private static let sensors: [String: Row] = [
        "temperature": Row(deviceClass: "temperature", units: ["°C"]),
        "dewpoint": Row(deviceClass: "temperature", units: ["°C"]),
        "humidity": Row(deviceClass: "humidity", units: ["%"]),
        "moisture": Row(deviceClass: "moisture", units: ["%"]),
        "battery": Row(deviceClass: "battery", units: ["%"]),
        "pressure": Row(deviceClass: "atmospheric_pressure", units: ["hPa", "Pa", "kPa"]),
        "illuminance": Row(deviceClass: "illuminance", units: ["lx"]),
        "precipitation": Row(deviceClass: "precipitation", units: ["mm"], stateClass: "total_increasing"),
        "co2": Row(deviceClass: "carbon_dioxide", units: ["ppm"]),
        "tvoc": Row(deviceClass: "volatile_organic_compounds", units: ["µg/m³"]),
        "pm2_5": Row(deviceClass: "pm25", units: ["µg/m³"]),
        "pm10": Row(deviceClass: "pm10", units: ["µg/m³"]),
        "voltage": Row(deviceClass: "voltage", units: ["V", "mV"]),
        "current": Row(deviceClass: "current", units: ["A", "mA"]),
        "power": Row(deviceClass: "power", units: ["W", "kW"]),
        "energy": Row(deviceClass: "energy", units: ["kWh", "Wh"], stateClass: "total_increasing"),
        "gas": Row(deviceClass: "gas", units: ["m³"], stateClass: "total_increasing"),
        "water": Row(deviceClass: "water", units: ["L", "m³"], stateClass: "total_increasing"),
        "volume": Row(deviceClass: "volume", units: ["L", "mL", "m³"], stateClass: "total"),
        "volume_storage": Row(deviceClass: "volume_storage", units: ["L", "mL", "m³"]),
        "volume_flow_rate": Row(deviceClass: "volume_flow_rate", units: ["m³/h"]),
        "mass": Row(deviceClass: "weight", units: ["kg", "g", "lb"]),
        "distance": Row(deviceClass: "distance", units: ["mm", "cm", "m"]),
        "speed": Row(deviceClass: "speed", units: ["m/s"]),
        "duration": Row(deviceClass: "duration", units: ["s", "min", "h"]),
        "uptime": Row(deviceClass: "duration", units: ["s"]),
        "tx_power": Row(deviceClass: "signal_strength", units: ["dBm"]),
    ]

    /// The classes of states. Names that are absent have none.
    private static let flags: [String: String] = [
        "battery_low": "battery", "battery_charging": "battery_charging", "carbon_monoxide": "carbon_monoxide",
        "cold": "cold", "connectivity": "connectivity", "door": "door", "garage_door": "garage_door",
        "gas_detected": "gas", "heat": "heat", "light": "light", "lock": "lock", "moisture_detected": "moisture",
        "motion": "motion", "moving": "moving", "occupancy": "occupancy", "opening": "opening", "plug": "plug",
        "power_on": "power", "presence": "presence", "problem": "problem", "running": "running", "safety": "safety",
        "smoke": "smoke", "sound": "sound", "tamper": "tamper", "vibration": "vibration", "window": "window",
    ]

    private static let texts: Set<String> = ["firmware_version", "text", "raw", "status_flags"]

    private static let diagnostics: Set<String> = [
        "battery", "voltage", "tx_power", "advertisement_count", "uptime", "settings_revision", "device_type_id",
        "firmware_version", "status_flags", "channel",
    ]
}

/// A discovery message of Home Assistant's MQTT integration.
private struct Discovery: Payload {
    var name: String
    var uniqueID: String
    var stateTopic: String
    var valueTemplate: String
    var deviceClass: String?
    var stateClass: String?
    var unit: String?
    var category: String?
    var availability: [Availability]
    /// All must be available.
    var availabilityMode = "all"
    var device: Device
    var origin: Origin

    struct Availability: Payload {
        var topic: String
        var template: String
        var available: String
        var notAvailable: String

        enum CodingKeys: String, CodingKey {
            case topic
            case template = "value_template"
            case available = "payload_available"
            case notAvailable = "payload_not_available"
        }
    }

    struct Device: Payload {
        var identifiers: [String]
        var connections: [[String]]
        var name: String
    }

    struct Origin: Payload {
        var name: String
        var version: String

        enum CodingKeys: String, CodingKey {
            case name
            case version = "sw_version"
        }
    }

    enum CodingKeys: String, CodingKey {
        case name, availability, device, origin
        case uniqueID = "unique_id"
        case stateTopic = "state_topic"
        case valueTemplate = "value_template"
        case deviceClass = "device_class"
        case stateClass = "state_class"
        case unit = "unit_of_measurement"
        case category = "entity_category"
        case availabilityMode = "availability_mode"
    }
}
