import BlueCapBlueZ
import BlueCapGATT
import XCTest

@testable import BlueCapKit

/// The properties and permissions of a characteristic as BlueZ's flags.
final class GattFlagsTests: XCTestCase {
    private typealias Row = (
        properties: CBCharacteristicProperties, permissions: CBAttributePermissions, flags: Set<String>
    )

    private func check(_ rows: [Row], file: StaticString = #filePath, line: UInt = #line) {
        for row in rows {
            let flags = GattFlags(row.properties, row.permissions)
            XCTAssertEqual(Set(flags.texts), row.flags, "\(row.properties) \(row.permissions)", file: file, line: line)
        }
    }

    func testThePermissionsAddTheirSecurityToTheProperties() {
        check([
            ([.read, .write, .notify], [.readable, .writeable], ["read", "write", "notify"]),
            ([.read], [.readEncryptionRequired], ["encrypt-read"]),
            ([.read], [.readAuthenticationRequired], ["encrypt-authenticated-read"]),
            ([.read], [.readSecureConnectionRequired], ["secure-read"]),
            ([.write], [.writeEncryptionRequired], ["encrypt-write"]),
            ([.write], [.writeAuthenticationRequired], ["encrypt-authenticated-write"]),
            ([.write], [.writeSecureConnectionRequired], ["secure-write"]),
            (
                [.read, .write], [.readEncryptionRequired, .writeSecureConnectionRequired],
                ["encrypt-read", "secure-write"]
            ),
            ([.read, .write], [.readAuthenticationRequired, .writeable], ["encrypt-authenticated-read", "write"]),
        ])
    }

    func testOfSeveralTheStrongestIsSentAlone() {
        let reading: [CBAttributePermissions] = [
            .readable, .readEncryptionRequired, .readAuthenticationRequired, .readSecureConnectionRequired,
        ]
        let writing: [CBAttributePermissions] = [
            .writeable, .writeEncryptionRequired, .writeAuthenticationRequired, .writeSecureConnectionRequired,
        ]
        let levels = ["", "encrypt-", "encrypt-authenticated-", "secure-"]
        for subset in 1..<16 {
            let chosen = (0..<4).filter { subset & 1 << $0 != 0 }
            let strongest = levels[chosen.last ?? 0]
            check([
                (.read, CBAttributePermissions(chosen.map { reading[$0] }), [strongest + "read"]),
                (.write, CBAttributePermissions(chosen.map { writing[$0] }), [strongest + "write"]),
            ])
            let descriptor = GattFlags(
                descriptor: CBAttributePermissions(chosen.flatMap { [reading[$0], writing[$0]] }))
            XCTAssertEqual(Set(descriptor.texts), [strongest + "read", strongest + "write"])
        }
    }

    func testSubscriptionsHaveTheirSecurityInTheProperties() {
        check([
            ([.notifyEncryptionRequired], [], ["encrypt-notify"]),
            ([.notify, .notifyAuthenticationRequired], [], ["encrypt-authenticated-notify"]),
            (
                [.notify, .notifyEncryptionRequired, .notifyAuthenticationRequired, .notifySecureConnectionRequired],
                [],
                ["secure-notify"]
            ),
            ([.indicateEncryptionRequired], [], ["encrypt-indicate"]),
            ([.indicate, .indicateAuthenticationRequired], [], ["encrypt-authenticated-indicate"]),
            ([.indicateEncryptionRequired, .indicateSecureConnectionRequired], [], ["secure-indicate"]),
            ([.notifyEncryptionRequired, .indicate], [], ["encrypt-notify", "indicate"]),
        ])
    }

    func testAPermissionAddsNoOperation() {
        check([
            ([.notify], [.readEncryptionRequired, .writeSecureConnectionRequired], ["notify"]),
            ([.read], [.writeable, .writeEncryptionRequired], ["read"]),
            ([], [.readable], []),
        ])
    }

    func testAWriteWithoutResponseThatNeedsSecurityIsAWriteToo() {
        check([
            (
                [.writeWithoutResponse], [.writeEncryptionRequired], ["write-without-response", "encrypt-write"]
            ),
            (
                [.authenticatedSignedWrites], [.writeAuthenticationRequired],
                ["authenticated-signed-writes", "encrypt-authenticated-write"]
            ),
        ])
    }

    func testAuthorizationIsAFlagOfItsOwn() {
        check([
            ([.read], [.readEncryptionRequired, .authorizationRequired], ["encrypt-read", "authorize"]),
            ([.write], [.writeable, .authorizationRequired], ["write", "authorize"]),
        ])
        XCTAssertEqual(Set(GattFlags(descriptor: [.readable, .authorizationRequired]).texts), ["read", "authorize"])
    }

    func testDescriptorsHaveTheFlagsOfTheirPermissions() {
        let table: [(CBAttributePermissions, Set<String>)] = [
            ([], []), (.readable, ["read"]), ([.readable, .writeable], ["read", "write"]),
            ([.readAuthenticationRequired], ["encrypt-authenticated-read"]),
            ([.readable, .writeSecureConnectionRequired], ["read", "secure-write"]),
        ]
        for (permissions, flags) in table {
            XCTAssertEqual(Set(GattFlags(descriptor: permissions).texts), flags)
        }
    }

    func testTheFirstFlagThatADaemonDoesNotEnforceIsNamed() throws {
        func service(_ flags: GattFlags, descriptor: GattFlags = .read) -> ServerService {
            ServerService(
                id: .next(), uuid: CBUUID(string: "B000"),
                characteristics: [
                    ServerCharacteristic(
                        id: .next(), uuid: CBUUID(string: "B001"), flags: flags,
                        descriptors: [ServerDescriptor(id: .next(), uuid: CBUUID(string: "2901"), flags: descriptor)])
                ])
        }
        let unknown = DaemonCapabilities()
        XCTAssertNil(service([.read, .encryptRead, .encryptAuthenticatedWrite]).firstUnenforcedFlag(by: unknown))
        for flag in [GattFlags.secureRead, .secureWrite, .encryptNotify, .encryptAuthenticatedIndicate, .secureNotify] {
            XCTAssertEqual(service([.read, flag]).firstUnenforcedFlag(by: unknown)?.flag, flag.texts[0])
        }
        let found = try XCTUnwrap(service(.read, descriptor: .secureWrite).firstUnenforcedFlag(by: unknown))
        XCTAssertEqual(found.attribute, CBUUID(string: "2901"))
    }
}
