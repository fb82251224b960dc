import Foundation

/// A response of HTTP/1.1, after which the connection ends.
struct Response: Hashable, Sendable {
    var status: Int
    var type: String
    var body: Data
    /// More fields; their values are the gateway's own.
    var fields: [String] = []

    static func json(_ body: Data, status: Int = 200) -> Response {
        Response(status: status, type: "application/json", body: body)
    }

    static func text(_ text: String, status: Int = 200, type: String = "text/plain; charset=utf-8") -> Response {
        Response(status: status, type: type, body: Data(text.utf8))
    }

    static func error(_ status: Int, _ message: String, fields: [String] = []) -> Response {
        Response(status: status, type: "text/plain; charset=utf-8", body: Data((message + "\n").utf8), fields: fields)
    }

    /// The bytes to send.
    ///
    /// - Parameter withBody: Whether the body is sent, which it is not in reply to `HEAD`.
    func encoded(withBody: Bool = true) -> Data {
        let head = Self.head(status, type: type, fields: ["Content-Length: \(body.count)"] + fields)
        return withBody ? head + body : head
    }

    /// The bytes of a head, with the fields that all responses have.
    ///
    /// Nothing is kept by caches, is taken for another type, is shown in frames of other pages, or is read by them.
    static func head(_ status: Int, type: String, fields: [String] = []) -> Data {
        var lines = [
            "HTTP/1.1 \(status) \(reasons[status] ?? "Error")", "Content-Type: \(type)", "Connection: close",
            "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "X-Frame-Options: DENY",
            "Referrer-Policy: no-referrer", "Cross-Origin-Resource-Policy: same-origin",
            "Cross-Origin-Opener-Policy: same-origin",
        ]
        if !fields.contains(where: { $0.hasPrefix("Content-Security-Policy:") }) {
            lines.append("Content-Security-Policy: default-src 'none'; frame-ancestors 'none'")
        }
        return Data((lines + fields + ["", ""]).joined(separator: "\r\n").utf8)
    }

    private static let reasons = [
        200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 408: "Request Timeout", 411: "Length Required", 413: "Content Too Large",
        415: "Unsupported Media Type", 421: "Misdirected Request", 429: "Too Many Requests",
        431: "Request Header Fields Too Large", 503: "Service Unavailable", 504: "Gateway Timeout",
        505: "HTTP Version Not Supported",
    ]
}
