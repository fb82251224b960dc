import BlueCapDBus
import BlueCapFutures
import BlueCapGATT
import BlueCapReactor
import XCTest

@testable import BlueCapBlueZ

final class AdvertisingTests: XCTestCase {
    private let daemon = FakeDaemon()
    private let reported = Locked<[RegistrationState]>([])
    private var kept: [Advertising] = []
    private let everything: AdvertisementData = {
        var data = AdvertisementData()
        data.kind = .broadcast
        data.serviceUUIDs = [CBUUID(string: "180D")]
        data.solicitedUUIDs = [CBUUID(string: "180F")]
        data.manufacturerData = [0x004C: Data([2, 21]), 1: Data()]
        data.serviceData = [CBUUID(string: "FEAA"): Data([0x10])]
        data.isDiscoverable = false
        data.includesTxPower = true
        data.localName = "Kitchen"
        data.appearance = 833
        data.duration = 2
        data.timeout = 30
        data.secondaryChannel = .coded
        data.minInterval = 100
        data.maxInterval = 200
        data.txPower = -8
        return data
    }()

    private func client(powered: Bool = true) -> BlueZClient {
        daemon.objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter(powered: powered))]
        daemon.appear()
        return BlueZClient.shared(at: daemon.bus.address)
    }

    /// The advertisement is kept until the end of the test.
    @discardableResult
    private func advertise(_ data: AdvertisementData, _ client: BlueZClient) -> Advertising {
        let reported = reported
        let advertising = Advertising(data, on: .hci0, client: client) { state in
            reported.withLock { $0.append(state) }
        }
        kept.append(advertising)
        daemon.loop.run()
        return advertising
    }

    private var states: [RegistrationState] { reported.withLock { $0 } }

    /// Replies to the pending registration. Returns the owner and the path of the advertisement.
    private func accept() -> (owner: String, path: ObjectPath) {
        guard let call = daemon.unanswered.first(where: { $0.member == "RegisterAdvertisement" }) else {
            XCTFail("Nothing waits to be registered.")
            return ("", .root)
        }
        var reader = call.reader
        let path = reader.objectPath() ?? .root
        daemon.answerLate("RegisterAdvertisement")
        return (call.sender ?? "", path)
    }

    private func ask(
        _ place: (owner: String, path: ObjectPath), _ interface: String, _ member: String,
        body: (inout MessageWriter) -> Void = { _ in }
    ) -> Result<Message, DBusError>? {
        let answer = Locked<Result<Message, DBusError>?>(nil)
        daemon.connection?.call(
            .call(destination: place.owner, path: place.path, interface: interface, member: member, body: body)
        ) { result in answer.withLock { $0 = result } }
        daemon.loop.run()
        return answer.withLock { $0 }
    }

    private func property(_ name: String, _ place: (owner: String, path: ObjectPath)) -> String {
        let result = ask(place, "org.freedesktop.DBus.Properties", "Get") { writer in
            writer.string("org.bluez.LEAdvertisement1")
            writer.string(name)
        }
        switch result {
        case .success(let reply)?:
            var reader = reply.reader
            return reader.variant { $0.signature } ?? ""
        case .failure(let error)?: return error.message
        case nil: return "nothing"
        }
    }

    func testEveryPropertyHasItsTypeAndAMissingOneSaysSo() {
        daemon.silent = ["RegisterAdvertisement"]
        let client = client()
        let advertising = advertise(everything, client)
        let place = accept()
        let types = [
            "Type": "s", "ServiceUUIDs": "as", "SolicitUUIDs": "as", "ManufacturerData": "a{qv}",
            "ServiceData": "a{sv}", "Discoverable": "b", "Includes": "as",
            "LocalName": "s", "Appearance": "q", "Duration": "q", "Timeout": "q", "SecondaryChannel": "s",
            "MinInterval": "u", "MaxInterval": "u", "TxPower": "n",
        ]
        for (name, type) in types { XCTAssertEqual(property(name, place), type, name) }
        XCTAssertEqual(property("Fragrance", place), "No such property 'Fragrance'")

        advertising.change(to: AdvertisementData())
        daemon.loop.run()
        let changed = accept()
        XCTAssertEqual(daemon.calls.suffix(2), ["UnregisterAdvertisement", "RegisterAdvertisement"])
        for name in types.keys where name != "Type" {
            XCTAssertEqual(property(name, changed), "No such property '\(name)'")
        }
    }

    func testItIsThereAgainAfterPowerAndDaemon() {
        let client = client(powered: false)
        advertise(AdvertisementData(), client)
        XCTAssertEqual(states, [.waiting(.adapter), .waiting(.power)])
        XCTAssertEqual(daemon.count("RegisterAdvertisement"), 0)
        daemon.set([("Powered", .bool(true))])
        XCTAssertEqual(states.suffix(2), [.registering, .registered])
        daemon.vanish()
        XCTAssertEqual(states.last, .waiting(.adapter))
        daemon.objects = [(BlueZMessages.adapterPath, BlueZMessages.adapter())]
        daemon.appear()
        XCTAssertEqual(states.last, .registered)
        XCTAssertEqual(daemon.count("RegisterAdvertisement"), 2)
    }

    func testARefusalIsReported() {
        let refusal = DBusError(name: "org.bluez.Error.NotPermitted", message: "Maximum advertisements reached")
        daemon.errors["RegisterAdvertisement"] = [refusal]
        let client = client()
        advertise(AdvertisementData(), client)
        XCTAssertEqual(states.last, .refused(BlueZError(refusal)))
        daemon.loop.advance(by: 60)
        XCTAssertEqual(daemon.count("RegisterAdvertisement"), 1)
    }

    func testAnAdapterWithoutTheInterfaceIsNamed() {
        let interfaces = BlueZMessages.adapter().filter { $0.0 != "org.bluez.LEAdvertisingManager1" }
        daemon.objects = [(BlueZMessages.adapterPath, interfaces)]
        daemon.appear()
        let client = BlueZClient.shared(at: daemon.bus.address)
        advertise(AdvertisementData(), client)
        XCTAssertEqual(states.last, .waiting(.support))
    }

    func testAReleaseIsMendedUnlessATimeOutWasAskedFor() {
        daemon.silent = ["RegisterAdvertisement"]
        let client = client()
        advertise(AdvertisementData(), client)
        XCTAssertNotNil(ask(accept(), "org.bluez.LEAdvertisement1", "Release"))
        let released = BlueZError(name: "org.bluez.Error.Failed", message: "Released.")
        XCTAssertEqual(states.last, .retrying(released))
        daemon.loop.advance(by: 1)
        _ = accept()
        XCTAssertEqual(states.last, .registered)

        advertise(everything, client)
        XCTAssertNotNil(ask(accept(), "org.bluez.LEAdvertisement1", "Release"))
        XCTAssertEqual(states.last, .timedOut)
    }

    func testARegistrationThatSucceedsAfterItsEndIsUnregistered() {
        daemon.silent = ["RegisterAdvertisement"]
        daemon.errors["UnregisterAdvertisement"] = [DBusError(name: "org.bluez.Error.DoesNotExist", message: "")]
        let client = client()
        let ended = Locked(false)
        advertise(AdvertisementData(), client).end { ended.withLock { $0 = true } }
        kept = []
        daemon.loop.advance(by: 300)
        XCTAssertEqual(daemon.count("UnregisterAdvertisement"), 1)
        XCTAssertTrue(ended.withLock { $0 }, "BlueZ has answered, and has none.")
        daemon.answerLate("RegisterAdvertisement")
        XCTAssertEqual(daemon.count("UnregisterAdvertisement"), 2)
    }

    func testItsEndIsTheLastReport() {
        let client = client()
        let advertising = advertise(AdvertisementData(), client)
        XCTAssertEqual(states.last, .registered)
        advertising.end()
        daemon.loop.run()
        XCTAssertEqual(daemon.count("UnregisterAdvertisement"), 1)
        XCTAssertEqual(states.last, .idle)
    }

    func testCapabilitiesAreRead() {
        daemon.bodies["GetAll"] = { writer in
            writer.dictionary(key: "s", value: "v") { dictionary in
                dictionary.entry("ActiveInstances", variant: "y") { $0.byte(1) }
                dictionary.entry("SupportedInstances", variant: "y") { $0.byte(4) }
                dictionary.entry("SupportedIncludes", variant: "as") { $0.strings(["tx-power", "local-name"]) }
                dictionary.entry("SupportedCapabilities", variant: "a{sv}") { capabilities in
                    capabilities.dictionary(key: "s", value: "v") { entries in
                        entries.entry("MaxAdvLen", variant: "y") { $0.byte(31) }
                        entries.entry("MaxTxPower", variant: "n") { $0.int16(7) }
                    }
                }
                dictionary.entry("Fragrance", variant: "s") { $0.string("rose") }
            }
        }
        let client = client()
        advertise(AdvertisementData(), client)
        let capabilities = Locked<AdvertisingCapabilities?>(nil)
        client.advertisingCapabilities(of: .hci0) { result in
            capabilities.withLock { $0 = try? result.get() }
        }
        daemon.loop.run()
        let read = capabilities.withLock { $0 }
        XCTAssertEqual(read?.activeInstances, 1)
        XCTAssertEqual(read?.supportedInstances, 4)
        XCTAssertEqual(read?.supportedIncludes, ["tx-power", "local-name"])
        XCTAssertEqual(read?.maxAdvertisementLength, 31)
        XCTAssertEqual(read?.maxTxPower, 7)
        XCTAssertNil(read?.supportedFeatures)
    }
}
