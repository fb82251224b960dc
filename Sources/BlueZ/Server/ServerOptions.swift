import DBus
import Foundation
import GATT

/// The `a{sv}` that comes with the calls of an application's attributes (`append_options` in `src/gatt-database.c`).
struct ServerOptions {
    var peer = ServerPeer()
    var offset = 0
    /// Whether a long write is only asked for.
    var asksForAuthorization = false

    init(_ reader: inout MessageReader) {
        var options = self
        reader.dictionary { entry in
            guard let key = entry.string() else { return }
            _ = entry.variant { value in options.take(key, &value) }
        }
        self = options
    }

    private mutating func take(_ key: String, _ value: inout MessageReader) {
        switch key {
        case "device":
            guard var path = value.objectPath()?.rawValue else { return }
            peer.device = path.withUTF8 { ObjectKey(path: $0) }
            peer.address = peer.device?.address
        case "mtu": peer.mtu = value.uint16().map(Int.init)
        case "link": peer.link = value.string().flatMap(ServerPeer.Link.init)
        case "offset": offset = Int(value.uint16() ?? 0)
        case "prepare-authorize": asksForAuthorization = value.bool() ?? false
        default: break
        }
    }
}
