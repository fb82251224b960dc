import Foundation

/// A request of HTTP/1.0 or HTTP/1.1.
struct Request: Hashable, Sendable {
    var method: String
    /// The path as it was sent, without the query.
    var path: String
    /// The fields by their names in lower case. Values of fields that occur several times are joined with commas.
    var fields: [String: String]
    var body: [UInt8]
}

/// Why a request is not carried out: a status and a sentence for its sender.
struct RequestError: Error, Hashable {
    var status: Int
    var message: String

    init(_ status: Int, _ message: String) {
        (self.status, self.message) = (status, message)
    }
}

/// Reads one request from bytes as they arrive, within limits (RFC 9112).
///
/// It is strict where tolerance would let two readers understand one request differently: lines end with CR LF, fields are
/// not folded, a length is given once, and no transfer coding is accepted.
struct RequestParser {
    struct Limits: Hashable, Sendable {
        /// The length of the request line and all fields in bytes.
        var head = 8_192
        var fields = 64
        var body = 16_384
    }

    private enum State {
        case head
        /// The head has been read; the body of this length begins here.
        case body(Request, start: Int, length: Int)
    }

    private let limits: Limits
    private var bytes: [UInt8] = []
    private var state = State.head
    /// Where the search for the end of the head continues.
    private var searched = 0

    init(limits: Limits) {
        self.limits = limits
    }

    /// Whether nothing has arrived yet.
    var isEmpty: Bool { bytes.isEmpty }

    /// Takes the next bytes.
    ///
    /// - Returns: The request once it is complete. Bytes that follow it are ignored.
    mutating func append(_ new: [UInt8]) throws(RequestError) -> Request? {
        bytes += new
        if case .head = state {
            guard let end = endOfHead() else {
                guard bytes.count <= limits.head else {
                    throw RequestError(431, "The request line and the fields have more than \(limits.head) bytes.")
                }
                return nil
            }
            let request = try parseHead(bytes[..<end])
            state = .body(request, start: end + 4, length: try length(of: request))
        }
        guard case .body(var request, let start, let length) = state, bytes.count - start >= length else { return nil }
        request.body = Array(bytes[start..<(start + length)])
        return request
    }

    /// Returns the index of the empty line's CR LF CR LF, if it is within the limit.
    private mutating func endOfHead() -> Int? {
        let last = min(bytes.count - 4, limits.head)
        while searched <= last {
            if bytes[searched] == 0x0D, bytes[searched + 1] == 0x0A, bytes[searched + 2] == 0x0D,
                bytes[searched + 3] == 0x0A
            {
                return searched
            }
            searched += 1
        }
        return nil
    }

    private func parseHead(_ head: ArraySlice<UInt8>) throws(RequestError) -> Request {
        guard head.allSatisfy({ $0 >= 0x20 && $0 < 0x7F || $0 == 0x0D || $0 == 0x0A || $0 == 0x09 }) else {
            throw RequestError(400, "The request line and the fields have to be printable ASCII characters.")
        }
        // In Swift, CR LF is one character, and a single CR or LF is another.
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
        guard lines.allSatisfy({ !$0.utf8.contains(0x0D) && !$0.utf8.contains(0x0A) }) else {
            throw RequestError(400, "A line does not end with CR LF.")
        }
        let parts = lines[0].split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, Self.isToken(parts[0]), parts[1].hasPrefix("/"), parts[2].hasPrefix("HTTP/") else {
            throw RequestError(400, "The request line is not of the form \"GET /path HTTP/1.1\".")
        }
        guard parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0" else {
            throw RequestError(505, "Only HTTP/1.1 and HTTP/1.0 are supported.")
        }
        guard lines.count - 1 <= limits.fields else {
            throw RequestError(431, "The request has more than \(limits.fields) fields.")
        }
        var request = Request(
            method: String(parts[0]), path: String(parts[1].prefix { $0 != "?" }), fields: [:], body: [])
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), Self.isToken(line[..<colon]) else {
                throw RequestError(400, "A field is not of the form \"Name: value\".")
            }
            let name = line[..<colon].lowercased()
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            guard let earlier = request.fields[name] else {
                request.fields[name] = value
                continue
            }
            guard !["host", "content-length", "authorization", "content-type"].contains(name) else {
                throw RequestError(400, "The field \"\(name)\" occurs twice.")
            }
            request.fields[name] = earlier + ", " + value
        }
        return request
    }

    private func length(of request: Request) throws(RequestError) -> Int {
        guard request.fields["transfer-encoding"] == nil else {
            throw RequestError(411, "Transfer codings are not supported; send the body with Content-Length.")
        }
        guard let text = request.fields["content-length"] else { return 0 }
        guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let length = Int(text)
        else { throw RequestError(400, "Content-Length is not a number.") }
        guard length <= limits.body else {
            throw RequestError(413, "The body has more than \(limits.body) bytes.")
        }
        return length
    }

    /// Whether a text is a token of RFC 9110, 5.6.2.
    private static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}
