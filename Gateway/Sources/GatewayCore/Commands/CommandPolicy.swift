/// Decides which commands are executed.
public struct CommandPolicy: Hashable, Sendable {
    private let rules: GatewayConfiguration.CommandRules

    /// Creates the policy of a configuration.
    public init(_ rules: GatewayConfiguration.CommandRules) { self.rules = rules }

    /// Returns why a command is refused, or `nil` if it is allowed. A command is allowed if one rule for the peripheral
    /// allows it.
    ///
    /// - Parameters:
    ///   - request: The command.
    ///   - device: The address of the peripheral to which the request's selector was resolved; `nil` if it is not known.
    ///   - name: The name of that peripheral.
    public func refusal(of request: CommandRequest, device: DeviceName?, name: String?) -> CommandReply.Failure? {
        guard let selector = request.peripheral else {
            guard !rules.scan else { return nil }
            return refuse("commands.scan is false in the gateway's configuration.")
        }
        var (device, name) = (device, name)
        switch selector {
        case .address(let address): device = address
        case .name(let given): name = given
        }
        let matching = rules.allow.filter { $0.peripheral.matches(device: device, name: name) }
        guard !matching.isEmpty else {
            return refuse("no rule of commands.allow in the gateway's configuration is for the peripheral \(selector).")
        }
        switch request.action {
        case .scan: return nil
        case .connect, .disconnect:
            guard !matching.contains(where: \.connect) else { return nil }
            return refuse("no rule of commands.allow for the peripheral \(selector) has connect: true.")
        case .read(_, let service, let characteristic):
            guard
                !matching.contains(where: {
                    $0.read.contains { $0.matches(service: service, characteristic: characteristic) }
                })
            else { return nil }
        case .write(_, let service, let characteristic, _):
            guard
                !matching.contains(where: {
                    $0.write.contains { $0.matches(service: service, characteristic: characteristic) }
                })
            else { return nil }
        case .subscribe(_, let service, let characteristic), .unsubscribe(_, let service, let characteristic):
            guard
                !matching.contains(where: {
                    $0.subscribe.contains { $0.matches(service: service, characteristic: characteristic) }
                })
            else { return nil }
        }
        let list = request.command == .unsubscribe ? "subscribe" : request.command.rawValue
        return refuse(
            "no rule of commands.allow for the peripheral \(selector) has the characteristic in its list \(list).")
    }

    private func refuse(_ reason: String) -> CommandReply.Failure {
        CommandReply.Failure(.notAllowed, "The command is not allowed: \(reason)")
    }
}

/// Limits the rate of commands: a bucket of one second.
public struct CommandRate: Hashable, Sendable {
    private let perSecond: Double
    private var tokens: Double
    private var last: Duration?

    /// Creates the limit.
    ///
    /// - Parameter perSecond: How many commands are admitted in a second, and at once after a pause.
    public init(perSecond: Int) { (self.perSecond, tokens) = (Double(max(perSecond, 1)), Double(max(perSecond, 1))) }

    /// Returns whether a command is admitted.
    ///
    /// - Parameter time: The time on a clock that does not run backwards.
    public mutating func admits(at time: Duration) -> Bool {
        if let last, time > last { tokens = min(tokens + (time - last) / .seconds(1) * perSecond, perSecond) }
        last = max(last ?? time, time)
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }
}
