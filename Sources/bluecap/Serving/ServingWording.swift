import BlueCapKit
import Foundation

/// What went wrong with a peripheral of ours, for people at a command line: no word of the library's functions.
enum ServingWording {
    /// - Parameter limit: How long BlueZ was given to register everything, in seconds.
    static func failure(_ error: any Error, limit: Double) -> ToolFailure {
        switch error {
        case _ where isTimeout(error):
            return ToolFailure(
                "bluetoothd did not answer within \(limit == limit.rounded() ? "\(Int(limit))" : "\(limit)") s: it may hang.",
                "`systemctl restart bluetooth` restarts it, and `journalctl -u bluetooth` shows its log.")
        case let failure as ToolFailure: return failure
        case let error as PeripheralManagerError:
            var failure = ToolFailure(text(for: error))
            switch error {
            case .notPoweredOn, .advertisingNotSupported, .servicesNotSupported: failure.status = ToolFailure.noAdapter
            default: break
            }
            return failure
        case let error as any LocalizedError: return ToolFailure(error.errorDescription ?? "\(error)")
        default: return ToolFailure("\(error)")
        }
    }

    /// Whether BlueZ has not answered a registration in time.
    static func isTimeout(_ error: any Error) -> Bool {
        switch error {
        case PeripheralManagerError.serviceTimeout, PeripheralManagerError.startAdvertisingTimeout: true
        default: false
        }
    }

    static func text(for error: PeripheralManagerError) -> String {
        switch error {
        case .advertisementTooLong(let field, let excess): tooLong(field, by: excess)
        case .notPoweredOn: "Bluetooth was switched off, or has gone, before everything was registered."
        case .tooManyAdvertisements(let count):
            "The adapter sends \(count) advertisements already, which is all that it can: "
                + "end one of them, of this program or another."
        default: error.description
        }
    }

    /// What can be done about an advertisement that does not fit.
    static func tooLong(_ field: AdvertisingField, by excess: Int) -> String {
        let bytes = excess == 1 ? "1 byte" : "\(excess) bytes"
        return switch field {
        case .localName: "The name is \(bytes) too long for an advertisement: 29 bytes of UTF-8 fit."
        case .serviceUUIDs:
            "The advertisement is \(bytes) too long for its 31: advertise fewer services, above all of long UUIDs."
        default: "The advertisement is \(bytes) too long for its 31: shorten its \(field), or leave something out."
        }
    }

    /// Why an advertisement has ended that nobody has ended; `nil` where we have.
    static func text(for end: AdvertisingEnd) -> String? {
        switch end {
        case .stopped, .notStarted, .managerEnded: nil
        case .timedOut: "The advertisement's time is over."
        case .refused(let failure): "bluetoothd does not advertise any more (\(failure))."
        }
    }
}
