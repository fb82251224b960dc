import BlueCapKit
import Dispatch

// Follows a heart rate strap. After a crash or a restart it restores its connection and subscription.
let (heartRate, measurement) = (CBUUID(string: "180D"), CBUUID(string: "2A37"))
let manager = try CentralManager(configuration: .init(restoreIdentifier: "us.gnos.BlueCap.follow"))

/// Receives measurements from a strap. `isNew` is true if no earlier process has subscribed to it.
@Sendable func follow(_ strap: Peripheral, isNew: Bool) {
    strap.connect().onSuccess { strap, event in
        if event == .disconnect || event == .timeout { strap.reconnect() }
        guard event == .connect else { return }
        strap.discoverServices([heartRate]).flatMap { strap -> Future<Service> in
            guard let service = strap.service(heartRate) else { throw PeripheralError.noServices }
            return service.discoverCharacteristics([measurement])
        }.onSuccess { service in
            guard let values = service.characteristic(measurement) else { return }
            values.receiveNotificationUpdates().onSuccess { _, data in print(isNew ? "new" : "restored", data ?? "gap")
            }
            if isNew { values.startNotifying() }
        }
    }
}

manager.whenStateRestored().onSuccess { peripherals, _, _ in
    for strap in peripherals { follow(strap, isNew: false) }
    guard peripherals.isEmpty else { return }
    manager.whenStateChanges().onSuccess { state in
        guard state == .poweredOn, !manager.isScanning else { return }
        manager.startScanning(forServiceUUIDs: [heartRate]).onSuccess { strap in
            manager.stopScanning()
            follow(strap, isNew: true)
        }
    }
}
dispatchMain()
