import XCTest

@testable import BlueCapGATT

final class VocabularyTests: XCTestCase {
    func testPropertiesHaveTheBitsOfTheCharacteristicDeclaration() {
        let properties: CBCharacteristicProperties = [.read, .write, .notify]
        XCTAssertEqual(properties.rawValue, 0x1A)
        XCTAssertEqual(CBCharacteristicProperties.indicateEncryptionRequired.rawValue, 0x200)
    }

    func testPermissionsHaveCoreBluetoothsValues() {
        let permissions: CBAttributePermissions = [.readable, .writeable]
        XCTAssertEqual(permissions.rawValue, 3)
    }

    func testAnErrorCodeOfTheApplicationIsKeptAsItCame() throws {
        let code = try XCTUnwrap(CBATTError.Code(rawValue: 0x85))

        XCTAssertEqual(code.rawValue, 0x85)
        XCTAssertTrue(code.isApplicationError)
        XCTAssertEqual(code.description, "application error 0x85")
    }

    func testAnErrorCodeThatDoesNotFitInAByteIsNone() {
        XCTAssertNil(CBATTError.Code(rawValue: 0x100))
        XCTAssertNil(CBATTError.Code(rawValue: -1))
    }

    func testErrorCodesCanBeSwitchedOver() {
        let code = CBATTError.Code(rawValue: 0x0D)
        switch code {
        case .some(.invalidAttributeValueLength): break
        default: XCTFail("0x0D is the code of a value with a wrong length")
        }
        XCTAssertEqual(CBATTError.invalidOffset.description, "invalid offset (0x07)")
    }
}

final class AssignedNumbersTests: XCTestCase {
    func testServicesAreFoundInEveryForm() {
        XCTAssertEqual(AssignedNumbers.serviceName(CBUUID(string: "180D")), "Heart Rate")
        XCTAssertEqual(
            AssignedNumbers.serviceName(CBUUID(string: "0000180f-0000-1000-8000-00805f9b34fb")), "Battery")
        XCTAssertEqual(
            AssignedNumbers.serviceName(CBUUID(string: "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")), "Nordic UART")
        XCTAssertNil(AssignedNumbers.serviceName(CBUUID(string: "0001180D")))
    }

    func testCompaniesAndAppearancesAreFound() {
        XCTAssertEqual(AssignedNumbers.companyName(0x004C), "Apple")
        XCTAssertEqual(AssignedNumbers.companyName(0x0499), "Ruuvi")
        XCTAssertNil(AssignedNumbers.companyName(0x7ABC))
        XCTAssertEqual(AssignedNumbers.appearanceName(0x00C1), "Watch")
        XCTAssertEqual(AssignedNumbers.appearanceName(0x03C2), "Mouse")
        XCTAssertNil(AssignedNumbers.appearanceName(0))
        XCTAssertEqual(AssignedNumbers.appearanceName(0x0A40), "Hearing Aid")
    }

    func testEveryLineOfTheTablesIsFound() {
        func count(_ name: (CBUUID) -> String?) -> Int {
            (0...0xFFFF as ClosedRange<UInt32>).count { name(CBUUID($0)) != nil }
        }
        XCTAssertEqual(count(AssignedNumbers.serviceName), 77)
        XCTAssertEqual(count(AssignedNumbers.descriptorName), 18)
        XCTAssertEqual(count(AssignedNumbers.characteristicName), 8)
        XCTAssertEqual((0...0xFFFF as ClosedRange<UInt16>).count { AssignedNumbers.companyName($0) != nil }, 104)
        // 51 categories of 64 appearances; the eight with their own names belong to one of them.
        XCTAssertEqual((0...0xFFFF as ClosedRange<UInt16>).count { AssignedNumbers.appearanceName($0) != nil }, 51 * 64)
        XCTAssertEqual(AssignedNumbers.descriptorName(CBUUID(0x2911)), "Valid Range and Accuracy")
        XCTAssertEqual(AssignedNumbers.characteristicName(CBUUID(0x2A05)), "Service Changed")
    }
}
