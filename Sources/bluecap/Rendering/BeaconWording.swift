import BlueCapKit
import Foundation

/// Beacons, for people and for programs.
enum BeaconWording {
    /// "iBeacon B9407F30-… 1/7".
    static func text(_ beacon: Beacon) -> String {
        switch beacon {
        case .iBeacon(let beacon): "iBeacon \(beacon.uuid.uuidString) \(beacon.major)/\(beacon.minor)"
        case .altBeacon(let beacon): "AltBeacon \(beacon.organization.uuidString) \(beacon.number)"
        case .eddystoneUID(let frame):
            "Eddystone \(ValueForm.hexadecimal(frame.namespace))/\(ValueForm.hexadecimal(frame.instance))"
        case .eddystoneURL(let frame): "Eddystone \(DisplayText.safe(frame.text))"
        case .eddystoneTLM(let frame):
            "Eddystone telemetry"
                + (frame.batteryMillivolts.map { ", \($0) mV" } ?? "")
                + (frame.temperature.map { String(format: ", %.1f °C", $0) } ?? "")
                + ", up \(EventTime.tenths(frame.uptime))"
        }
    }

    /// The members of a beacon's object.
    static func object(_ beacon: Beacon) -> JSONObject {
        var object = JSONObject()
        object.add("kind", beacon.kind.rawValue)
        switch beacon {
        case .iBeacon(let beacon):
            object.add("uuid", beacon.uuid.uuidString)
            object.add("major", Int(beacon.major))
            object.add("minor", Int(beacon.minor))
        case .altBeacon(let beacon):
            object.add("uuid", beacon.organization.uuidString)
            object.add("number", Int(beacon.number))
            object.add("company", Int(beacon.company))
        case .eddystoneUID(let frame):
            object.add("namespace", ValueForm.hexadecimal(frame.namespace))
            object.add("instance", ValueForm.hexadecimal(frame.instance))
        case .eddystoneURL(let frame):
            object.add("url", frame.text)
        case .eddystoneTLM(let frame):
            object.add("batteryMillivolts", frame.batteryMillivolts.map { Int($0) })
            object.add("temperature", frame.temperature.map { String(format: "%.2f", $0) })
            object.add("advertisements", Int(frame.advertisementCount))
            object.add("uptime", seconds: frame.uptime)
        }
        if beacon.kind != .eddystoneTLM { object.add("measuredPower", beacon.measuredPower) }
        return object
    }
}
