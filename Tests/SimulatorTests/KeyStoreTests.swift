import XCTest

@testable import BlueZSimulator

/// The keys of each device, and the JSON forms of what is said about pairing.
final class KeyStoreTests: XCTestCase {
    private let adapter: VirtualAddress = "00:AA:01:01:00:00"
    private let lock: VirtualAddress = "C0:00:00:00:00:01"

    private func paired(isBonded: Bool = true) -> KeyStore {
        var keys = KeyStore()
        keys.add(adapter, lock, .encrypted, isBonded: isBonded)
        return keys
    }

    func testBothDevicesHaveTheKeysOfAPairing() {
        let keys = paired()
        XCTAssertEqual(keys.encryption(from: adapter, to: lock), .encrypted)
        XCTAssertEqual(keys.encryption(from: lock, to: adapter), .encrypted)
        XCTAssertEqual(keys.key(of: adapter, for: lock)?.isBonded, true)
        XCTAssertNil(KeyStore().encryption(from: adapter, to: lock))
    }

    func testEachDeviceForgetsByItself() {
        var keys = paired()
        keys[lock, adapter] = nil
        XCTAssertNil(keys.encryption(from: adapter, to: lock))
        XCTAssertNotNil(keys.key(of: adapter, for: lock))
        XCTAssertNil(keys.encryption(from: lock, to: adapter))
    }

    func testANewPairingReplacesTheKeysOfBoth() {
        var keys = paired()
        keys.add(adapter, lock, .secure, isBonded: true)
        XCTAssertEqual(keys.encryption(from: adapter, to: lock), .secure)
    }

    func testAKeyThatIsNotLoadedIsMissingUntilItIs() {
        var keys = paired()
        keys[adapter, lock]?.isLoaded = false
        XCTAssertNil(keys.encryption(from: adapter, to: lock))
        XCTAssertNil(keys.key(of: adapter, for: lock))
        XCTAssertNotNil(keys.key(of: lock, for: adapter))
        XCTAssertNil(keys.encryption(from: lock, to: adapter))
        keys.load(of: adapter)
        XCTAssertEqual(keys.encryption(from: adapter, to: lock), .encrypted)
    }

    func testKeysOfOneLinkEndWithIt() {
        for isBonded in [true, false] {
            var keys = paired(isBonded: isBonded)
            keys.linkEnded(lock, adapter)
            XCTAssertEqual(keys.key(of: adapter, for: lock) != nil, isBonded)
            XCTAssertEqual(keys.key(of: lock, for: adapter) != nil, isBonded)
        }
    }

    // MARK: JSON

    private func decoded<Value: Codable>(_ text: String, as type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(text.utf8))
    }

    private func roundTrip<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: try JSONEncoder().encode(value))
    }

    func testSecurityIsReadFromItsJSONForm() throws {
        XCTAssertEqual(try decoded("{}"), VirtualSecurity())
        XCTAssertEqual(try decoded("{}"), AttributeSecurity.none)
        XCTAssertEqual(
            try decoded(#"{"read": "encrypted", "subscribe": "secure"}"#),
            AttributeSecurity(read: .encrypted, subscribe: .secure))
        let text = """
            {"capability": "KeyboardDisplay", "hasSecureConnections": false, "wantsMITM": false,
             "user": {"confirms": {"reject": 2}, "passkey": {"number": 123456}, "displays": 7},
             "privacy": {"identity": "00:1B:DC:00:00:01"}}
            """
        XCTAssertEqual(
            try decoded(text),
            VirtualSecurity(
                .keyboardDisplay, hasSecureConnections: false, wantsMITM: false,
                user: VirtualUser(confirms: .reject(after: 2), passkey: .number(123_456), displays: 7),
                privacy: VirtualPrivacy(identity: "00:1B:DC:00:00:01")))
    }

    func testEachValueSurvivesItsJSONForm() throws {
        for answer in [VirtualUser.Answer.accept, .accept(after: 1), .reject, .never] {
            for entry in [VirtualUser.Entry.displayed, .displayed(after: 3), .wrong, .number(5), .never] {
                let user = VirtualUser(confirms: answer, passkey: entry, displays: 1)
                XCTAssertEqual(try roundTrip(user), user)
            }
        }
        for capability in PairingCapability.allCases {
            for wantsMITM in [true, false] {
                let security = VirtualSecurity(
                    capability, isBondable: false, wantsMITM: wantsMITM, requestsSecurity: true,
                    confirmsJustWorksRepairing: true,
                    privacy: VirtualPrivacy(identity: lock, identityType: .random))
                XCTAssertEqual(try roundTrip(security), security)
            }
        }
        for level in LinkSecurity.allCases {
            let security = AttributeSecurity(read: level, write: .none, subscribe: level)
            XCTAssertEqual(try roundTrip(security), security)
        }
    }

    func testTheSecurityOfAPeripheralAndItsAttributesSurvivesItsJSONForm() throws {
        let peripheral = VirtualPeripheral(
            lock,
            services: [
                VirtualService(
                    "B001",
                    characteristics: [
                        VirtualCharacteristic(
                            "B002", [.read, .notify],
                            descriptors: [VirtualDescriptor("2901", security: AttributeSecurity(write: .secure))],
                            security: AttributeSecurity(read: .authenticated, subscribe: .encrypted))
                    ])
            ], security: VirtualSecurity(.keyboardOnly))
        XCTAssertEqual(try roundTrip(peripheral), peripheral)
    }

    func testNumbersAndNamesOutsideTheirRangesAreRefused() {
        for text in [
            #"{"user": {"displays": 1000000}}"#, #"{"user": {"passkey": {"number": -1}}}"#,
            #"{"capability": "Telepathy"}"#, #"{"user": {"confirms": {"accept": -1}}}"#, #"{"usr": {}}"#,
        ] {
            XCTAssertThrowsError(try decoded(text, as: VirtualSecurity.self), text)
        }
        XCTAssertThrowsError(try decoded(#"{"read": "paranoid"}"#, as: AttributeSecurity.self))
        XCTAssertEqual(VirtualUser(displays: 1_000_000).displays, 999_999)
    }
}
