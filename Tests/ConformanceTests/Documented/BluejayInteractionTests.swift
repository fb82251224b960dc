import Bluejay
import BlueZSimulator
import XCTest

/// The guide's section Interactions.
final class BluejayInteractionTests: DocumentedBluejayCase, @unchecked Swift.Sendable {
    private struct IndexPath { var row: Int }
    private final class Label { var text: String? }
    private final class Cell {
        enum AccessoryType { case none, checkmark }
        var detailTextLabel: Label? = Label()
        var accessoryType = AccessoryType.none
    }
    private final class NavigationController {
        var pops = 0
        func popViewController(animated: Bool) { pops += 1 }
    }

    /// The guide's view controllers.
    private final class ViewController {
        let bluejay: Bluejay
        let seen: Notes
        let sensorLocationCell = Cell()
        var sensorLocation: UInt8?
        var selectedCell: Cell? = Cell()
        let navigationController: NavigationController? = NavigationController()

        init(_ bluejay: Bluejay, _ seen: Notes) { (self.bluejay, self.seen) = (bluejay, seen) }

        private func debugPrint(_ value: Any) { seen.note("\(value)") }

        func read() {
            let heartRateService = ServiceIdentifier(uuid: "180D")
            let sensorLocation = CharacteristicIdentifier(uuid: "2A38", service: heartRateService)

            bluejay.read(from: sensorLocation) { [weak self] (result: ReadResult<UInt8>) in
                guard let weakSelf = self else {
                    return
                }

                switch result {
                case .success(let location):
                    weakSelf.debugPrint("Read from sensor location is successful: \(location)")

                    var locationString = "Unknown"

                    switch location {
                    case 0:
                        locationString = "Other"
                    case 1:
                        locationString = "Chest"
                    case 2:
                        locationString = "Wrist"
                    case 3:
                        locationString = "Finger"
                    case 4:
                        locationString = "Hand"
                    case 5:
                        locationString = "Ear Lobe"
                    case 6:
                        locationString = "Foot"
                    default:
                        locationString = "Unknown"
                    }

                    weakSelf.sensorLocationCell.detailTextLabel?.text = locationString
                    weakSelf.sensorLocation = location
                case .failure(let error):
                    weakSelf.debugPrint(
                        "Failed to read from sensor location with error: \(error.localizedDescription)")
                }
            }
        }

        func write(_ indexPath: IndexPath, _ cell: Cell) {
            let sensorLocation = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))

            bluejay.write(
                to: sensorLocation, value: UInt8(indexPath.row),
                completion: { [weak self] (result) in
                    guard let weakSelf = self else {
                        return
                    }

                    switch result {
                    case .success:
                        weakSelf.debugPrint("Write to sensor location is successful.")

                        if let selectedCell = weakSelf.selectedCell {
                            selectedCell.accessoryType = .none
                        }
                        cell.accessoryType = .checkmark

                        weakSelf.navigationController?.popViewController(animated: true)
                    case .failure(let error):
                        weakSelf.debugPrint(
                            "Failed to write to sensor location with error: \(error.localizedDescription)")
                    }
                })
        }

        func startMonitoringHeartRate() {
            let heartRateMeasurement = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))

            bluejay.listen(to: heartRateMeasurement) { [weak self] (result: ReadResult<HeartRateMeasurement>) in
                guard let weakSelf = self else {
                    return
                }

                switch result {
                case .success(let heartRateMeasurement):
                    weakSelf.debugPrint(heartRateMeasurement.measurement)
                case .failure(let error):
                    weakSelf.debugPrint(
                        "Failed to listen to heart rate measurement with error: \(error.localizedDescription)")
                }
            }
        }

        private func updateSensorLocationLabel(value: UInt8) { debugPrint("location \(value)") }

        func reset() {
            let seen = seen
            let heartRateService = ServiceIdentifier(uuid: "180D")
            let heartRateMeasurement = CharacteristicIdentifier(uuid: "2A37", service: heartRateService)
            let sensorLocation = CharacteristicIdentifier(uuid: "2A38", service: heartRateService)

            bluejay.run(backgroundTask: { (peripheral) -> UInt8 in
                // 1. Stop monitoring.
                seen.note("Reset step 1: stop monitoring.")
                try peripheral.endListen(to: heartRateMeasurement)

                // 2. Set sensor location to 0.
                seen.note("Reset step 2: set sensor location to 0.")
                try peripheral.write(to: sensorLocation, value: UInt8(0))

                // 3. Read sensor location.
                seen.note("Reset step 3: read sensor location.")
                let sensorLocation = try peripheral.read(from: sensorLocation) as UInt8

                // 4. Return the data interested and process it in the completion block on the main thread.
                seen.note("Reset step 4: return sensor location.")
                return sensorLocation
            }) { [weak self] (result: RunResult<UInt8>) in
                guard let weakSelf = self else {
                    return
                }

                switch result {
                case .success(let sensorLocation):
                    // Update the sensor location label on the main thread.
                    weakSelf.updateSensorLocationLabel(value: sensorLocation)

                    // Resume monitoring. Now we can use the non-blocking listen from Bluejay.
                    weakSelf.startMonitoringHeartRate()
                case .failure(let error):
                    weakSelf.debugPrint(
                        "Failed to complete reset background task with error: \(error.localizedDescription)")
                }
            }
        }
    }

    private let location = CharacteristicIdentifier(uuid: "2A38", service: ServiceIdentifier(uuid: "180D"))
    private let measurement = CharacteristicIdentifier(uuid: "2A37", service: ServiceIdentifier(uuid: "180D"))

    func testAValueIsRead() {
        connectedSensor()
        let controller = ViewController(bluejay, seen)
        controller.read()
        eventually("the value") { controller.sensorLocation == 1 }
        XCTAssertEqual(seen.texts, ["Read from sensor location is successful: 1"])
        XCTAssertEqual(controller.sensorLocationCell.detailTextLabel?.text, "Chest")
    }

    func testAValueIsWritten() {
        connectedSensor()
        let (controller, cell) = (ViewController(bluejay, seen), Cell())
        controller.write(IndexPath(row: 3), cell)
        eventually("the end") { controller.navigationController?.pops == 1 }
        XCTAssertEqual(seen.texts, ["Write to sensor location is successful."])
        XCTAssertTrue(cell.accessoryType == .checkmark)
        XCTAssertEqual(simulator.value(of: .uuid("2A38"), at: Self.address), [3])
    }

    func testAWriteThatIsNotAllowedSaysSo() {
        connectedSensor()
        simulator.simulateServicesChanged(
            of: Self.address,
            to: [VirtualService("180D", characteristics: [VirtualCharacteristic("2A38", [.read], value: [1])])])
        pass(5)
        let controller = ViewController(bluejay, seen)
        controller.write(IndexPath(row: 3), Cell())
        eventually("the failure") { seen.count > 0 }
        XCTAssertTrue(
            seen.texts[0].hasPrefix(
                "Failed to write to sensor location with error: This characteristic cannot be written"),
            "\(seen.texts)")
    }

    func testAListenLastsUntilItIsEnded() {
        connectedSensor()
        let controller = ViewController(bluejay, seen)
        controller.startMonitoringHeartRate()
        awaitListen()
        XCTAssertEqual(try bluejay.isListening(to: measurement), true)
        notify([0, 72])
        notify([0, 74])
        let seen = seen
        bluejay.endListen(to: measurement) { _ in seen.note("ended") }
        eventually("the end") { seen.contains("ended") }
        notify([0, 76])
        XCTAssertEqual(seen.texts, ["72", "74", "ended"])
        XCTAssertEqual(try bluejay.isListening(to: measurement), false)
    }

    func testThereIsOneListenOfACharacteristic() {
        connectedSensor()
        let controller = ViewController(bluejay, seen)
        controller.startMonitoringHeartRate()
        awaitListen()
        controller.startMonitoringHeartRate()
        eventually("the refusal") { seen.count == 1 }
        XCTAssertTrue(seen.texts[0].contains("is listened to already"), seen.texts[0])
    }

    func testAListenMayBeReplacedWhereItSaysSo() {
        connectedSensor()
        let seen = seen
        for name in ["first", "second"] {
            bluejay.listen(to: measurement, multipleListenOption: .replaceable) { (result: ReadResult<Data>) in
                if case .failure(let error) = result {
                    seen.note("\(name) \(error as? BluejayError == .multipleListenReplaced)")
                } else {
                    seen.note(name)
                }
            }
        }
        eventually("the failure") { seen.contains("first true") }
        awaitListen()
        notify([0, 72])
        XCTAssertEqual(seen.texts, ["first true", "second"])
    }

    func testAListenThatIsNotSupportedFails() {
        connectedSensor()
        let seen = seen
        bluejay.listen(to: location) { (result: ReadResult<UInt8>) in
            if case .failure(let error) = result { seen.note(error.localizedDescription) }
        }
        eventually("the failure") { seen.count == 1 }
        XCTAssertTrue(seen.texts[0].contains("does not send notifications"), seen.texts[0])
    }

    func testABatchRunsInTheBackground() {
        connectedSensor()
        let controller = ViewController(bluejay, seen)
        controller.startMonitoringHeartRate()
        awaitListen()
        controller.reset()
        eventually("the end") { seen.contains("location 0") }
        awaitListen()
        notify([0, 80])
        XCTAssertEqual(
            seen.texts,
            [
                "Reset step 1: stop monitoring.", "Reset step 2: set sensor location to 0.",
                "Reset step 3: read sensor location.", "Reset step 4: return sensor location.", "location 0", "80",
            ])
    }

    func testTheFirstErrorEndsABatch() {
        connectedSensor()
        simulator.simulateDropAfter(requests: 1, of: Self.address)
        let controller = ViewController(bluejay, seen)
        controller.reset()
        eventually("the failure") { seen.texts.last?.hasPrefix("Failed to complete reset background task") == true }
        XCTAssertFalse(seen.contains("Reset step 4: return sensor location."))
    }

    func testABatchMayTakeUserDataAndReturnNothing() {
        connectedSensor()
        let (seen, location) = (seen, location)
        bluejay.run(
            userData: UInt8(5),
            backgroundTask: { peripheral, value in try peripheral.write(to: location, value: value) }
        ) { (result: RunResult<Void>) in
            if case .success = result { seen.note("data") }
        }
        eventually("the end") { seen.contains("data") }
        bluejay.run(
            userData: UInt8(6),
            backgroundTask: { peripheral, value -> UInt8 in
                try peripheral.write(to: location, value: value)
                return try peripheral.read(from: location)
            }
        ) { (result: RunResult<UInt8>) in
            if case .success(let value) = result { seen.note("both \(value)") }
        }
        eventually("the end") { seen.contains("both 6") }
        bluejay.run(backgroundTask: { peripheral in try peripheral.write(to: location, value: UInt8(7)) }) { result in
            if case .success = result { seen.note("neither") }
        }
        eventually("the end") { seen.contains("neither") }
    }

    func testTheOuterBluejayMustNotBeCalledInABatch() {
        connectedSensor()
        let (seen, location, bluejay) = (seen, location, bluejay!)
        bluejay.run(backgroundTask: { _ in
            bluejay.read(from: location) { (result: ReadResult<UInt8>) in
                if case .failure(let error) = result { seen.note(error.localizedDescription) }
            }
        }) { _ in seen.note("end") }
        eventually("the end") { seen.contains("end") }
        XCTAssertEqual(seen.texts, [BluejayError.calledInsideBackgroundTask.localizedDescription, "end"])
    }
}
