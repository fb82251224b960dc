/// The interfaces of a remote device's attributes, as a version describes them.
extension InterfaceTable {
    static let battery = InterfaceTable(
        name: Daemon.batteryInterface, properties: [Property(name: "Percentage", signature: "y")])

    static func service(_ traits: DaemonTraits) -> InterfaceTable {
        InterfaceTable(
            name: Daemon.serviceInterface,
            properties: ServiceProperty.allCases.filter(traits.serviceProperties.contains).map {
                Property(name: $0.rawValue, signature: $0.signature)
            })
    }

    static func characteristic(_ traits: DaemonTraits) -> InterfaceTable {
        InterfaceTable(
            name: Daemon.characteristicInterface,
            methods: [
                readValue, writeValue,
                Method(name: "AcquireWrite", takes: [("options", "a{sv}")], gives: [("fd", "h"), ("mtu", "q")]),
                Method(name: "AcquireNotify", takes: [("options", "a{sv}")], gives: [("fd", "h"), ("mtu", "q")]),
                Method(name: "StartNotify"), Method(name: "StopNotify"),
            ],
            properties: CharacteristicProperty.allCases.filter(traits.characteristicProperties.contains).map {
                Property(name: $0.rawValue, signature: $0.signature)
            })
    }

    static func descriptor(_ traits: DaemonTraits) -> InterfaceTable {
        InterfaceTable(
            name: Daemon.descriptorInterface, methods: [readValue, writeValue],
            properties: DescriptorProperty.allCases.filter(traits.descriptorProperties.contains).map {
                Property(name: $0.rawValue, signature: $0.signature)
            })
    }

    private static let readValue = Method(
        name: "ReadValue", takes: [("options", "a{sv}")], gives: [("value", "ay")])
    private static let writeValue = Method(name: "WriteValue", takes: [("value", "ay"), ("options", "a{sv}")])
}
