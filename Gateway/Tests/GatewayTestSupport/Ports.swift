public import Foundation

/// TCP on 127.0.0.1.
public enum Loopback {
    /// Returns ports on which nothing listens at the moment.
    ///
    /// They are below those that Linux gives to outgoing connections: a connection could otherwise take the port of a broker
    /// that is to be restarted, even a client's attempt to connect to that port.
    public static func freePorts(_ count: Int) throws -> [UInt16] {
        var ports: [UInt16] = []
        for _ in 0..<1_000 where ports.count < count {
            let port = UInt16.random(in: 10_240..<32_768)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            var address = address(of: port)
            let isFree = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            if isFree && !ports.contains(port) { ports.append(port) }
        }
        guard ports.count == count else {
            throw LimitExceeded("no \(count) free ports: \(String(cString: strerror(errno)))")
        }
        return ports
    }

    /// Returns one port on which nothing listens at the moment.
    public static func freePort() throws -> UInt16 { try freePorts(1)[0] }

    /// Whether something listens on a port.
    public static func accepts(_ port: UInt16) -> Bool {
        guard let descriptor = connected(to: port) else { return false }
        close(descriptor)
        return true
    }

    /// Requests a document over HTTP/1.0, and returns its body, or `nil` if there is no response with status 200.
    public static func get(_ path: String, port: UInt16) -> Data? {
        guard let descriptor = connected(to: port) else { return nil }
        defer { close(descriptor) }
        let request = Array("GET \(path) HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".utf8)
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return nil }
        var response = Data()
        var buffer = [UInt8](repeating: 0, count: 16384)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count >= 0, response.count < 16 << 20 else { return nil }
            if count == 0 { break }
            response.append(contentsOf: buffer[..<count])
        }
        guard let end = response.range(of: Data("\r\n\r\n".utf8)),
            let status = String(data: response[..<end.lowerBound], encoding: .utf8)?.split(separator: " ").dropFirst()
                .first,
            status == "200"
        else { return nil }
        return response[end.upperBound...]
    }

    private static func address(of port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        return address
    }

    private static func connected(to port: UInt16) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = address(of: port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}
