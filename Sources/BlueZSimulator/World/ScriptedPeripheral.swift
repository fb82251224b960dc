import Foundation

/// A virtual peripheral as a server: its attributes and its faults.
struct ScriptedPeripheral: Sendable {
    private(set) var peripheral: VirtualPeripheral
    var database: AttributeDatabase
    var faults = PeripheralFaults()
    var isAway = false
    /// The links that it has, and the attempts to connect that it considers. Others wait until one of these ends.
    var centrals: [CentralEnd] = []
    var address: VirtualAddress { peripheral.address }
    /// How many more it accepts.
    var freeLinks: Int { max(0, peripheral.linkLimit - centrals.count) }

    init(_ peripheral: VirtualPeripheral) {
        self.peripheral = peripheral
        database = AttributeDatabase(
            peripheral.services, name: peripheral.name ?? peripheral.advertisement.localName,
            appearance: peripheral.advertisement.appearance)
    }

    /// Changes the peripheral. If its attributes change, their values start from the beginning, and this returns true.
    mutating func change(to changed: VirtualPeripheral) -> Bool {
        let database = Self(changed).database
        let isChanged = database != Self(peripheral).database
        peripheral = changed
        if isChanged { self.database = database }
        return isChanged
    }

    /// Returns the time from which it accepts a connection that is attempted at `now`; nil if it will not.
    func reachable(atOrAfter now: TimeInterval) -> TimeInterval? {
        guard peripheral.advertisement.isConnectable else { return nil }
        if peripheral.isRemembered { return peripheral.services.isEmpty ? nil : now }
        let start = max(now, peripheral.appearsAfter)
        return start < peripheral.disappearsAfter ?? .infinity ? start : nil
    }

    // MARK: Requests

    /// Returns the error code for what is not allowed over a link of this security; nil for what is.
    func refusal(of request: AttributeRequest, over security: LinkSecurity) -> UInt8? {
        guard let place = database.place(of: request.handle) else { return ATTError.invalidHandle }
        let flags = place.descriptor?.flags ?? place.characteristic.flags
        let permissions = database.attributes[request.handle]?.permissions
        switch request.kind {
        case .read:
            guard flags.contains(.read) else { return ATTError.readNotPermitted }
            return permissions?.read?.refusal(over: security)
        case .write(_, let bytes, let type):
            guard Limits.valueLength.contains(bytes.count) else { return ATTError.invalidLength }
            let needed: CharacteristicFlag = type == .command ? .writeWithoutResponse : .write
            guard flags.contains(needed) || type == .reliable && flags.contains(.reliableWrite) else {
                return ATTError.writeNotPermitted
            }
            return permissions?.write?.refusal(over: security)
        }
    }

    /// Whether subscriptions are written to the attribute with this handle.
    func isConfiguration(_ handle: UInt16) -> Bool { database.attributes[handle]?.content == .configuration }

    /// The attribute with this handle, as its behaviour sees it.
    func attribute(_ handle: UInt16) -> VirtualAttribute? {
        guard let place = database.place(of: handle) else { return nil }
        return VirtualAttribute(
            service: place.service.uuid, characteristic: place.characteristic.uuid, descriptor: place.descriptor?.uuid,
            handle: handle)
    }

    /// Returns what the faults and the request make of an outcome, which has the bytes of the whole value.
    mutating func outcome(of request: AttributeRequest, _ outcome: AttributeAnswer.Outcome) -> AttributeAnswer.Outcome {
        var outcome = outcome
        if faults.vanishesInWrite, case .write = request.kind, !isConfiguration(request.handle) {
            faults.vanishesInWrite = false
            outcome = .linkLoss
        }
        if let requests = faults.requestsUntilDrop {
            faults.requestsUntilDrop = requests > 1 ? requests - 1 : nil
            if requests <= 1 { outcome = .linkLoss }
        }
        if faults.isSilent { return .never }
        guard case .success(var bytes) = outcome else { return outcome }
        guard case .read(let offset) = request.kind else { return .success([]) }
        if faults.extraLength < 0 { bytes.removeLast(min(bytes.count, -faults.extraLength)) }
        if faults.extraLength > 0 { bytes += Array(repeating: 0xEE, count: faults.extraLength) }
        return offset <= bytes.count ? .success(Array(bytes.dropFirst(offset))) : .error(ATTError.invalidOffset)
    }
}

struct PeripheralFaults: Sendable {
    /// Draws those of the next attempts to connect, of which that share is faulty; nil if these stay.
    var random: (numbers: SeededGenerator, share: Double)?
    /// The number of attempts to connect that fail.
    var refusals = 0
    /// The number of links that end that many seconds after they came up.
    var drops = 0
    var dropDelay: TimeInterval = 0
    /// The link ends in place of the response to the request with this number, from 1; nil for never.
    var requestsUntilDrop: Int?
    /// Whether requests get no response.
    var isSilent = false
    /// Seconds that are added to each response.
    var extraDelay: TimeInterval = 0
    /// The number of bytes by which values that are read are too long, or too short if negative.
    var extraLength = 0
    /// Whether the link ends during the next write.
    var vanishesInWrite = false
    /// Whether a discovery finds nothing.
    var isUnresolved = false
    /// In place of the link's own delay of objects; nil for that.
    var exportDelay: TimeInterval?

    /// Replaces the faults for an attempt to connect, if they are drawn.
    mutating func draw() {
        guard var random else { return }
        let isFaulty = Double(random.numbers.next() >> 11) / Double(1 << 53) < random.share
        let kind = random.numbers.next() % 8
        let size = Int(random.numbers.next() % 6) + 1
        self = PeripheralFaults(random: random)
        guard isFaulty else { return }
        switch kind {
        case 0: refusals = 1
        case 1:
            drops = 1
            dropDelay = Double(size) * 0.03
        case 2, 3: requestsUntilDrop = size
        case 4: vanishesInWrite = true
        case 5: isSilent = true
        case 6: extraDelay = Double(size) * 0.4
        default: isUnresolved = true
        }
    }
}
