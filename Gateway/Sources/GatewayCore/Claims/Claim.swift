public import Foundation

/// What a gateway publishes, retained, on `bluecap/claim/D/G` about its link to a device.
///
/// The payload is a JSON object; an empty payload removes the claim:
///
/// ```json
/// {"bid":-61.5,"freeLinks":2,"number":17,"session":38211,"state":"holds","strength":-63,"version":1}
/// ```
///
/// A gateway publishes its claim again at least each ``ClaimOptions/refreshInterval``, with the next number, so that
/// the other gateways recognise a claim whose gateway has ended while the broker was away.
public struct Claim: Hashable, Sendable {
    /// What the gateway asks for.
    public enum State: String, Hashable, Sendable, Codable, CaseIterable {
        /// Another gateway has the link, and this one has received the device better for the time that a hand-over
        /// needs.
        case wants
        /// The gateway is about to ask for a link, and gives way to a claim that precedes its own.
        case takes
        /// The gateway has asked for a link, or has it.
        case holds
        /// The gateway is ending its link.
        case yields
    }

    public var state: State
    /// The smoothed strength at which the gateway receives the device, in dBm; `nil` if it receives nothing of it.
    public var strength: Double?
    /// The strength at the beginning of the claim, in dBm. It does not change, so that two gateways that compare
    /// their claims reach the same result.
    public var bid: Double
    /// The number of links that the gateway can still take, at the beginning of the claim.
    public var freeLinks: Int
    /// In ``State/yields``, the gateway whose request was granted; `nil` if any may take the device.
    public var successor: String?
    /// A number that a gateway draws when it starts.
    public var session: UInt32
    /// Counts the claims that a gateway has published in its session.
    public var number: UInt64

    /// The version of the payload.
    public static let version = 1
    /// The longest payload that is decoded, in bytes.
    public static let sizeLimit = 1_024

    /// Creates a claim; strengths are rounded to half a decibel.
    public init(
        _ state: State, strength: Double?, bid: Double, freeLinks: Int = 0, successor: String? = nil, session: UInt32,
        number: UInt64
    ) {
        self.state = state
        self.strength = strength.map(Self.rounded)
        self.bid = Self.rounded(bid)
        (self.freeLinks, self.successor, self.session, self.number) = (freeLinks, successor, session, number)
    }

    /// Whether no other gateway may ask for a link while this claim stands.
    public var isExclusive: Bool { state != .wants }

    /// Returns whether the claim of one gateway precedes that of another: the stronger bid, in steps of 3 dB, then
    /// more free links, then the name that is first in the order of its bytes.
    public static func precedes(_ left: Claim, of leftName: String, _ right: Claim, of rightName: String) -> Bool {
        let levels = ((left.bid / 3).rounded(.down), (right.bid / 3).rounded(.down))
        if levels.0 != levels.1 { return levels.0 > levels.1 }
        if left.freeLinks != right.freeLinks { return left.freeLinks > right.freeLinks }
        return leftName.utf8.lexicographicallyPrecedes(rightName.utf8)
    }

    static func rounded(_ strength: Double) -> Double { (strength * 2).rounded() / 2 }

    // MARK: Payload

    /// Decodes a payload.
    ///
    /// A claim of a later version of the format is read as ``State/holds`` without a strength: its device is left
    /// alone.
    ///
    /// - Returns: `nil` if the payload is empty, which removes the claim.
    /// - Throws: If the payload is too long, is not such an object, or has a number outside its range.
    public static func decode(_ payload: Data) throws(ClaimError) -> Claim? {
        guard !payload.isEmpty else { return nil }
        guard payload.count <= sizeLimit else { throw .tooLong(payload.count) }
        let decoder = JSONDecoder()
        let fields: Fields
        do {
            let format = try decoder.decode(Format.self, from: payload).version
            guard format <= version else {
                let stamp = try? decoder.decode(Stamp.self, from: payload)
                return Claim(.holds, strength: nil, bid: 20, session: stamp?.session ?? 0, number: stamp?.number ?? 1)
            }
            guard format == version else { throw ClaimError.malformed }
            fields = try decoder.decode(Fields.self, from: payload)
        } catch { throw .malformed }
        guard let state = fields.state, let bid = fields.bid, let session = fields.session, let number = fields.number
        else { throw .malformed }
        let range = -127.0...20.0
        guard range.contains(bid), fields.strength.map(range.contains) ?? true,
            (0...1_000).contains(fields.freeLinks ?? 0), (fields.successor?.utf8.count ?? 0) <= 256
        else { throw .outOfRange }
        guard let known = State(rawValue: state) else { throw .malformed }
        return Claim(
            known, strength: fields.strength, bid: bid, freeLinks: fields.freeLinks ?? 0, successor: fields.successor,
            session: session, number: number)
    }

    /// The payload of the claim, with sorted members.
    public var payload: Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let fields = Fields(
            version: Self.version, state: state.rawValue, strength: strength, bid: bid, freeLinks: freeLinks,
            successor: successor, session: session, number: number)
        // Numbers in these ranges, and texts, are always encodable.
        return (try? encoder.encode(fields)) ?? Data()
    }

    private struct Format: Decodable {
        var version: Int
    }

    private struct Stamp: Decodable {
        var session: UInt32
        var number: UInt64
    }

    private struct Fields: Codable {
        var version: Int
        var state: String?
        var strength: Double?
        var bid: Double?
        var freeLinks: Int?
        var successor: String?
        var session: UInt32?
        var number: UInt64?
    }
}

/// Why a payload is not a claim.
public enum ClaimError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The payload has more than ``Claim/sizeLimit`` bytes.
    case tooLong(Int)
    /// The payload is not a JSON object with the members of a claim.
    case malformed
    /// A strength is not within -127 to 20 dBm, or another member is too large.
    case outOfRange

    public var description: String {
        switch self {
        case .tooLong(let size):
            "The claim has \(size) bytes; at most \(Claim.sizeLimit) are read. Remove what published it from the topic."
        case .malformed:
            "The payload is not a claim: a JSON object with version, state, bid, session and number. Only gateways may "
                + "publish on the topics of claims."
        case .outOfRange: "A strength in the claim is not within -127 to 20 dBm, or another member is too large."
        }
    }
}
