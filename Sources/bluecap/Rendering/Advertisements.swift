import BlueCapKit
import Foundation

extension Beacon {
    /// The beacon on one line, safe to print: "iBeacon B9407F30-… 1/7".
    var line: String {
        switch self {
        case .iBeacon(let beacon): "iBeacon \(beacon.uuid.uuidString) \(beacon.major)/\(beacon.minor)"
        case .altBeacon(let beacon): "AltBeacon \(beacon.organization.uuidString) \(beacon.number)"
        case .eddystoneUID(let frame):
            "Eddystone \(frame.namespace.hexStringValue())/\(frame.instance.hexStringValue())"
        case .eddystoneURL(let frame): "Eddystone \(DisplayText.safe(frame.text))"
        case .eddystoneTLM(let frame):
            "Eddystone telemetry"
                + (frame.batteryMillivolts.map { ", \($0) mV" } ?? "")
                + (frame.temperature.map { String(format: ", %.1f °C", $0) } ?? "")
                + ", up \(Wording.tenths(frame.uptime))"
        }
    }

    var json: JSON {
        var members: JSON.Members = [("kind", JSON(kind.rawValue))]
        switch self {
        case .iBeacon(let beacon):
            members += [
                ("uuid", JSON(beacon.uuid.uuidString)), ("major", JSON(beacon.major)), ("minor", JSON(beacon.minor)),
            ]
        case .altBeacon(let beacon):
            members += [
                ("uuid", JSON(beacon.organization.uuidString)), ("number", JSON(beacon.number)),
                ("company", JSON(beacon.company)),
            ]
        case .eddystoneUID(let frame):
            members += [("namespace", JSON(frame.namespace)), ("instance", JSON(frame.instance))]
        case .eddystoneURL(let frame):
            members += [("url", JSON(frame.text))]
        case .eddystoneTLM(let frame):
            // It has no measured power.
            return JSON(
                members + [
                    ("batteryMillivolts", JSON(frame.batteryMillivolts)),
                    ("temperature", frame.temperature.map { JSON(number: ($0 * 100).rounded() / 100) } ?? .null),
                    ("advertisements", JSON(frame.advertisementCount)), ("uptime", JSON(seconds: frame.uptime)),
                ])
        }
        return JSON(members + [("measuredPower", JSON(measuredPower))])
    }
}

extension AdvertisingData {
    var beacons: [Beacon] { Beacon.all(manufacturerData: manufacturerData, serviceData: serviceData) }

    /// The advertisement on one line, safe to print: "\"Desk\", Battery, data of Apple, Inc."; a beacon by its kind.
    var line: String {
        guard beacons.isEmpty else { return beacons.map(\.line).joined(separator: ", ") }
        var parts: [String] = []
        if let localName { parts.append("\"\(DisplayText.safe(localName))\"") }
        parts += serviceUUIDs.map(Wording.service)
        parts += solicitedServiceUUIDs.map { "looking for \(Wording.service($0))" }
        parts += manufacturerData.keys.sorted().map { "data of \(Wording.company($0))" }
        parts += serviceData.keys.sorted { $0.uuidString < $1.uuidString }.map { "data of \(Wording.service($0))" }
        if let appearance {
            parts.append(AssignedNumbers.appearanceName(appearance) ?? "appearance \(appearance)")
        }
        return parts.joined(separator: ", ")
    }

    var json: JSON {
        [
            "name": JSON(localName), "services": JSON(serviceUUIDs.map(\.uuidString)),
            "solicitedServices": JSON(solicitedServiceUUIDs.map(\.uuidString)),
            "manufacturerData": JSON(manufacturerData) { "\($0)" },
            "serviceData": JSON(serviceData, key: \.uuidString), "appearance": JSON(appearance),
            "connectable": JSON(kind == .connectable), "bytes": JSON(byteCount),
            "scanResponseBytes": JSON(scanResponseByteCount), "beacons": JSON(beacons.map(\.json)),
        ]
    }
}

extension SensorReading {
    /// Of devices that measure nothing.
    private static let kinds = ["swift_pair": "Swift Pair", "fast_pair": "Fast Pair", "apple_continuity": "Apple"]

    /// The measurements on one line, safe to print: "temperature 21.5 °C, humidity 48 %"; or "Apple Handoff, Nearby Info".
    var line: String {
        guard !isEncrypted else { return "encrypted measurements" }
        let kind = Self.kinds[format]
        let texts = values.map { kind == nil ? "\(DisplayText.safe($0.label)) \($0.text)" : $0.text }
        return [kind, texts.joined(separator: ", ")].compactMap { $0?.isEmpty == true ? nil : $0 }.joined(
            separator: " ")
    }

    var json: JSON {
        let values = values.map { JSON([("name", JSON($0.name)), ("value", $0.json), ("unit", JSON($0.unit))]) }
        return [
            "format": JSON(format), "sequenceNumber": JSON(sequenceNumber), "encrypted": JSON(isEncrypted),
            "values": JSON(values),
        ]
    }
}

extension SensorValue {
    /// The name for people: "dew point".
    var label: String { name.replacing("_", with: " ") }

    /// The value with its unit, safe to print.
    var text: String {
        switch value {
        case .number(let number): Quantity(number: number, unit: unit).text
        case .flag(let isSet): isSet ? "yes" : "no"
        case .text(let text): DisplayText.safe(text)
        }
    }

    /// The number without its unit, or else the text.
    var number: String { if case .number(let number) = value { JSON(number: number).text } else { text } }

    fileprivate var json: JSON {
        switch value {
        case .number(let number): JSON(number: number)
        case .flag(let isSet): JSON(isSet)
        case .text(let text): JSON(text)
        }
    }
}
