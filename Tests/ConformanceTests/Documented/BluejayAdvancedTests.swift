import Bluejay
import BlueZSimulator
import XCTest

/// The guide's section Advanced Usage, but for the migration.
final class BluejayAdvancedTests: DocumentedBluejayCase, @unchecked Swift.Sendable {
    private enum Services {
        static let deviceInfo = ServiceIdentifier(uuid: "180A")
        static let rigado = ServiceIdentifier(uuid: "2456E1B9-26E2-8F83-E744-F34F01E9D701")
    }

    private enum Characteristics {
        static let serialNumber = CharacteristicIdentifier(uuid: "2A25", service: Services.deviceInfo)
        static let rigadoRX = CharacteristicIdentifier(
            uuid: "2456E1B9-26E2-8F83-E744-F34F01E9D703", service: Services.rigado)
        static let rigadoTX = CharacteristicIdentifier(
            uuid: "2456E1B9-26E2-8F83-E744-F34F01E9D704", service: Services.rigado)
    }

    private enum Registers {
        enum system { static let firmwareVersion = UInt16(0x10) }
    }

    private struct ReadRequest: Sendable {
        var handle: UInt16
        func toBluetoothData() -> Data { Bluejay.combine(sendables: [UInt8(1), handle.bigEndian]) }
    }

    private struct FirmwareVersion: Receivable {
        static let length = 7
        let string: String
        init(bluetoothData: Data) throws { string = try bluetoothData.extract(start: 2, length: 5) }
    }

    /// The guide's `settings`.
    // Unchecked: written by the task, read when it is over.
    private final class Settings: @unchecked Swift.Sendable { var firmware = "" }

    private final class Label { var text: String? }

    /// The guide's view controller that connects by a serial number.
    private final class ViewController {
        // Properties.
        private var blacklistedDiscoveries = [ScanDiscovery]()
        private var targetSerialNumber: String?
        let bluejay: Bluejay
        let seen: Notes
        let statusLabel = Label()

        init(_ bluejay: Bluejay, _ seen: Notes, target: String) {
            (self.bluejay, self.seen, targetSerialNumber) = (bluejay, seen, target)
        }

        private func debugPrint(_ text: String) { seen.note(text) }

        // Scan by Serial Number function.
        func scan(services: [ServiceIdentifier], serialNumber: String) {
            debugPrint("Looking for peripheral with serial number \(serialNumber) to connect to.")

            statusLabel.text = "Searching..."

            bluejay.scan(
                allowDuplicates: false,
                serviceIdentifiers: services,
                discovery: { [weak self] (discovery, discoveries) -> ScanAction in
                    guard let weakSelf = self else {
                        return .stop
                    }

                    if weakSelf.blacklistedDiscoveries.contains(where: { (blacklistedDiscovery) -> Bool in
                        return blacklistedDiscovery.peripheralIdentifier == discovery.peripheralIdentifier
                    }) {
                        return .blacklist
                    } else {
                        return .connect(
                            discovery,
                            .none,
                            WarningOptions(
                                notifyOnConnection: false, notifyOnDisconnection: true, notifyOnNotification: false),
                            { (connectionResult) in
                                switch connectionResult {
                                case .success(let peripheral):
                                    weakSelf.debugPrint("Connection to \(peripheral.name) successful.")

                                    weakSelf.bluejay.read(
                                        from: Characteristics.serialNumber,
                                        completion: { (readResult: ReadResult<String>) in
                                            switch readResult {
                                            case .success(let serialNumber):
                                                if serialNumber == weakSelf.targetSerialNumber {
                                                    weakSelf.debugPrint("Serial number matched.")

                                                    weakSelf.statusLabel.text = "Connected"
                                                } else {
                                                    weakSelf.debugPrint("Serial number mismatch.")

                                                    weakSelf.blacklistedDiscoveries.append(discovery)

                                                    weakSelf.bluejay.disconnect(completion: { (result) in
                                                        switch result {
                                                        case .success:
                                                            weakSelf.scan(
                                                                services: [Services.deviceInfo],
                                                                serialNumber: weakSelf.targetSerialNumber!)
                                                        case .failure(let error):
                                                            preconditionFailure(
                                                                "Disconnect failed with error: \(error.localizedDescription)"
                                                            )
                                                        }
                                                    })
                                                }
                                            case .failure(let error):
                                                weakSelf.debugPrint(
                                                    "Read serial number failed with error: \(error.localizedDescription)."
                                                )

                                                weakSelf.statusLabel.text = "Read Error: \(error.localizedDescription)"
                                            }
                                        })
                                case .failure(let error):
                                    weakSelf.debugPrint(
                                        "Connection to \(discovery.peripheralIdentifier) failed with error: \(error.localizedDescription)"
                                    )

                                    weakSelf.statusLabel.text = "Connection Error: \(error.localizedDescription)"
                                }
                            })
                    }
                }
            ) { [weak self] (discoveries, error) in
                guard let weakSelf = self else {
                    return
                }

                if let error = error {
                    weakSelf.debugPrint("Scan stopped with error: \(error.localizedDescription)")

                    weakSelf.statusLabel.text = "Scan Error: \(error.localizedDescription)"
                } else {
                    weakSelf.debugPrint("Scan stopped without error.")
                }
            }
        }
    }

    private func sensor(_ number: Int) -> VirtualPeripheral {
        VirtualPeripheral(
            VirtualAddress(stringLiteral: "C0:FF:EE:00:25:0\(number)"), addressType: .random,
            advertisement: Advertisement(localName: "Sensor \(number)", serviceUUIDs: ["180A"]),
            interval: 0.1 + Double(number) / 50,
            services: [
                VirtualService(
                    "180A", characteristics: [VirtualCharacteristic("2A25", [.read], value: Array("S-\(number)".utf8))])
            ])
    }

    func testConnectingBySerialNumber() {
        startBluejay()
        for number in 1...3 { simulator.add(sensor(number)) }
        let controller = ViewController(bluejay, seen, target: "S-3")
        controller.scan(services: [Services.deviceInfo], serialNumber: "S-3")
        eventually("the right one", limit: 120) { controller.statusLabel.text == "Connected" }
        XCTAssertTrue(bluejay.isConnected)
        XCTAssertEqual(seen.texts.last, "Serial number matched.")
        XCTAssertTrue(seen.contains("Connection to Sensor 3 successful."))
        // No sensor was connected twice.
        XCTAssertEqual(
            Set(seen.texts.filter { $0.hasPrefix("Connection") }).count,
            seen.texts.filter { $0.hasPrefix("Connection") }.count)
        let scans = seen.texts.filter { $0 == "Scan stopped without error." }.count
        XCTAssertEqual(scans, seen.texts.filter { $0.hasPrefix("Looking for") }.count)
    }

    /// Sends the response to a request for a register in packets of one, two, … bytes.
    private final class Module: PeripheralBehavior {
        let simulator: Simulator
        init(_ simulator: Simulator) { self.simulator = simulator }

        func write(
            _ bytes: [UInt8], to attribute: VirtualAttribute, of peripheral: VirtualPeripheral,
            type: VirtualWriteType, at seconds: TimeInterval
        ) -> AttributeAnswer {
            guard bytes == [1, 0, 0x10] else { return .error(0x80) }
            var answer = ([0, 0x10] + Array("1.4.2".utf8))[...]
            var size = 1
            while !answer.isEmpty {
                simulator.notify(
                    peripheral.address, characteristic: .uuid("2456E1B9-26E2-8F83-E744-F34F01E9D703"),
                    value: Array(answer.prefix(size)))
                (answer, size) = (answer.dropFirst(size), size + 1)
            }
            return .done
        }
    }

    private func connectedModule() {
        startBluejay()
        simulator.add(Self.sensor, behavior: Module(simulator))
        bluejay.scan(
            serviceIdentifiers: nil, discovery: { discovery, _ in .connect(discovery) { _ in } }, stopped: { _, _ in })
        eventually("the connection") { bluejay.isConnected }
    }

    func testAnAnswerIsAssembled() {
        connectedModule()
        let (settings, seen) = (Settings(), seen)
        bluejay.run(backgroundTask: { peripheral in
            try peripheral.writeAndAssemble(
                writeTo: Characteristics.rigadoTX,
                value: ReadRequest(handle: Registers.system.firmwareVersion),
                listenTo: Characteristics.rigadoRX,
                expectedLength: FirmwareVersion.length,
                completion: { (firmwareVersion: FirmwareVersion) -> ListenAction in
                    settings.firmware = firmwareVersion.string
                    return .done
                })
        }) { (result: RunResult<Void>) in
            if case .failure(let error) = result { seen.note(error.localizedDescription) }
            seen.note("end")
        }
        eventually("the end") { seen.contains("end") }
        XCTAssertEqual(seen.texts, ["end"])
        XCTAssertEqual(settings.firmware, "1.4.2")
    }

    func testAnAnswerThatDoesNotComeTimesOut() {
        connectedModule()
        let seen = seen
        bluejay.run(backgroundTask: { peripheral in
            try peripheral.writeAndAssemble(
                writeTo: Characteristics.rigadoTX, value: ReadRequest(handle: Registers.system.firmwareVersion),
                listenTo: Characteristics.rigadoRX, expectedLength: FirmwareVersion.length + 1, timeout: .seconds(5)
            ) { (_: Data) in .done }
        }) { (result: RunResult<Void>) in
            if case .failure(let error) = result { seen.note("\(error as? BluejayError == .listenTimedOut)") }
        }
        eventually("the time-out", limit: 7) { seen.contains("true") }
    }

    func testAWriteIsFollowedByAListen() {
        connectedModule()
        let seen = seen
        bluejay.run(backgroundTask: { peripheral in
            try peripheral.writeAndListen(
                writeTo: Characteristics.rigadoTX, value: ReadRequest(handle: Registers.system.firmwareVersion),
                listenTo: Characteristics.rigadoRX
            ) { (packet: Data) -> ListenAction in
                seen.note("\(packet.count)")
                return packet.count == 3 ? .done : .keepListening
            }
        }) { (result: RunResult<Void>) in seen.note("end") }
        eventually("the end") { seen.contains("end") }
        XCTAssertEqual(seen.texts, ["1", "2", "3", "end"])
    }

    func testAListenOfABatchBlocksUntilItIsDone() {
        connectedSensor()
        let seen = seen
        let measurement = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))
        bluejay.run(backgroundTask: { peripheral in
            try peripheral.listen(to: measurement) { (value: HeartRateMeasurement) -> ListenAction in
                seen.note("\(value.measurement)")
                return value.measurement > 73 ? .done : .keepListening
            }
            seen.note("after")
        }) { (result: RunResult<Void>) in seen.note("end") }
        awaitListen()
        for rate in UInt8(72)...76 { notify([0, rate]) }
        eventually("the end") { seen.contains("end") }
        XCTAssertEqual(seen.texts, ["72", "73", "74", "after", "end"])
    }

    func testAListenIsFlushed() {
        connectedModule()
        let seen = seen
        bluejay.run(backgroundTask: { peripheral in
            try peripheral.flushListen(
                to: Characteristics.rigadoRX, idleWindow: 1,
                completion: {
                    seen.note("Flushed buffered data on RigadoRX.")
                })
        }) { (result: RunResult<Void>) in seen.note("end") }
        let uuid = "2456E1B9-26E2-8F83-E744-F34F01E9D703"
        awaitListen(uuid)
        for _ in 0..<5 {
            notify([1, 2, 3], from: uuid)
            pass(0.5)
        }
        XCTAssertEqual(seen.texts, [])
        eventually("the end", limit: 2) { seen.contains("end") }
        XCTAssertEqual(seen.texts, ["Flushed buffered data on RigadoRX.", "end"])
    }
}
