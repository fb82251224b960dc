import DBus
import GATT

extension DBusError {
    /// The error by which BlueZ tells a central this code (`dbus_error_to_att_ecode` in `src/gatt-database.c` of 5.66; 0xFD
    /// since 5.76). A name that it does not know becomes 0x0E, "unlikely error".
    static func refusal(_ code: CBATTError.Code, ofRead isRead: Bool) -> DBusError {
        func bluez(_ name: String, _ message: String) -> DBusError {
            DBusError(name: "org.bluez.Error." + name, message: message)
        }
        switch code {
        case _ where code.isApplicationError:
            return bluez("Failed", "0x" + String(code.rawValue, radix: 16))
        case .readNotPermitted where isRead, .writeNotPermitted where !isRead:
            return bluez("NotPermitted", "\(code)")
        case .requestNotSupported: return bluez("NotSupported", "\(code)")
        case .invalidOffset: return bluez("InvalidOffset", "\(code)")
        case .insufficientAuthorization: return bluez("NotAuthorized", "\(code)")
        case .invalidAttributeValueLength: return bluez("InvalidValueLength", "\(code)")
        case _ where code.rawValue == 0xFE: return bluez("InProgress", "\(code)")
        case _ where code.rawValue == 0xFD: return bluez("ImproperlyConfigured", "\(code)")
        default: return bluez("UnlikelyError", "\(code)")
        }
    }
}
