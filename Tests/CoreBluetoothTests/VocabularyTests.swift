import BlueCapKit
import CoreBluetooth
import XCTest

/// Initializers as libraries for iOS have them, which compile only if it is a class.
extension CBUUID {
    fileprivate convenience init(number: UInt16) { self.init(string: String(format: "%04X", number)) }

    fileprivate convenience init?(optional text: String?) {
        guard let text, UUID(uuidString: text) != nil else { return nil }
        self.init(string: text)
    }

    fileprivate convenience init(copy uuid: CBUUID) { self.init(data: uuid.data) }
}

/// One file can import CoreBluetooth and BlueCapKit, and CoreBluetooth has Foundation.
final class VocabularyTests: XCTestCase {
    /// `GATTTests.CBUUIDTests` has the forms that are accepted, and the message.
    func testATextThatIsNoUUIDDoesNotEndTheProgram() {
        XCTAssertEqual(CBUUID(string: "0x180D"), CBUUID(string: "180D"))
        XCTAssertNotEqual(CBUUID(string: "18OD"), CBUUID(string: "180O"))
        XCTAssertNotEqual(CBUUID(data: Data([1])), CBUUID(data: Data([1, 2, 3])))
    }

    func testProgramsExtendTheClassOfUUIDs() {
        let full = "0000180D-0000-1000-8000-00805F9B34FB"
        let uuids: [any Sendable & Hashable] = [CBUUID(number: 0x180D), CBUUID(string: full)]
        XCTAssertEqual(uuids.compactMap { ($0 as? CBUUID)?.uuidString }, ["180D", full])
        XCTAssertNil(CBUUID(optional: "180D"))
        XCTAssertEqual(CBUUID(string: "180d").debugDescription, "180D")
        XCTAssertNotEqual(CBUUID(), CBUUID(number: 0))
        XCTAssertEqual(CBUUID(optional: full)?.uuidString, full)
        XCTAssertTrue(CBUUID(copy: CBUUID(string: full)).isEqual(CBUUID(number: 0x180D)))
    }

    func testWhatIsMadeWithAUUIDHasItInTheSameForm() {
        for text in ["180D", "0000180D", "0000180D-0000-1000-8000-00805F9B34FB"] {
            let uuid = CBUUID(string: text)
            XCTAssertEqual(CBMutableService(type: uuid, primary: true).uuid.uuidString, text)
            XCTAssertEqual(MutableService(uuid: uuid).uuid.uuidString, text)
            XCTAssertEqual(
                MutableCharacteristic(uuid: uuid, properties: .read, permissions: .readable, value: nil).uuid
                    .uuidString,
                text)
            XCTAssertEqual(ServiceIdentifier(uuid: uuid).uuidString, "180D", "Identifiers have the shortest form.")
        }
    }

    func testErrorsMatchByTheirCodes() {
        let error: any Error = CBError(.connectionTimeout)
        XCTAssertEqual((error as NSError).domain, CBErrorDomain)
        XCTAssertEqual((error as NSError).code, 6)
        XCTAssertEqual(error.localizedDescription, "The connection has timed out unexpectedly.")
        do {
            throw error
        } catch CBError.connectionTimeout {
        } catch {
            XCTFail("\(error)")
        }
        let refusal: any Error = CBATTError(.insufficientEncryption)
        XCTAssertEqual((refusal as NSError).domain, CBATTErrorDomain)
        XCTAssertEqual((refusal as NSError).code, CBATTError.insufficientEncryption.rawValue)
        switch refusal {
        case CBATTError.insufficientEncryption: break
        default: XCTFail("\(refusal)")
        }
    }

    func testAnNSErrorOfTheDomainIsTheError() {
        let text = "The program's own text."
        let made: any Error = NSError(
            domain: CBErrorDomain, code: 6,
            userInfo: [NSLocalizedDescriptionKey: text, NSUnderlyingErrorKey: CBATTError(.invalidHandle)])
        XCTAssertEqual((made as? CBError)?.code, .connectionTimeout)
        XCTAssertEqual((made as? CBError)?.localizedDescription, text)
        XCTAssertEqual((made as? CBError)?.underlyingError as? CBATTError, CBATTError(.invalidHandle))
        XCTAssertNil(made as? CBATTError)
        XCTAssertEqual(CBError(_nsError: made as NSError).code, .connectionTimeout)
        XCTAssertEqual(CBError(_nsError: NSError(domain: CBErrorDomain, code: 999)).code, .unknown)
        do {
            throw made
        } catch CBError.connectionTimeout {
        } catch {
            XCTFail("\(error)")
        }
        let refusal: any Error = NSError(domain: CBATTErrorDomain, code: 0x85)
        XCTAssertEqual((refusal as? CBATTError)?.code, .application(0x85))
        XCTAssertEqual(CBATTError(_nsError: refusal as NSError).code.rawValue, 0x85)
        XCTAssertNil(refusal as? CBError)
        let there: any Error = CBError(.peripheralDisconnected)
        XCTAssertEqual((there as NSError) as? CBError, CBError(.peripheralDisconnected), "There and back.")
        XCTAssertEqual((CBATTError(.invalidOffset) as any Error as NSError) as? CBATTError, CBATTError(.invalidOffset))
    }

    /// Programs conform Apple's errors to `LocalizedError` themselves, and compare the texts.
    func testTheTextsOfErrorsAreApples() {
        let errors: [any Error] = [CBError(.unknown), CBATTError(.invalidHandle)]
        for error in errors { XCTAssertFalse(error is any LocalizedError, "\(error)") }
        let texts = [
            "The handle is invalid.", "Reading is not permitted.", "Writing is not permitted.",
            "The command is invalid.",
            "Authentication is insufficient.", "The request is not supported.", "The offset is invalid.",
            "Authorization is insufficient.", "The prepare queue is full.", "The attribute could not be found.",
            "The attribute is not long.", "The encryption key size is insufficient.", "The value's length is invalid.",
            "Unlikely error.", "Encryption is insufficient.", "The group type is unsupported.",
            "Resources are insufficient.", "Unknown ATT error.",
        ]
        for (index, text) in texts.enumerated() {
            let error: any Error = CBATTError(CBATTError.Code(rawValue: index + 1)!)
            XCTAssertEqual(error.localizedDescription, text)
            XCTAssertEqual((error as NSError).localizedDescription, text)
        }
        XCTAssertEqual((CBATTError(.application(0x80)) as any Error).localizedDescription, "Unknown ATT error.")
    }
}
