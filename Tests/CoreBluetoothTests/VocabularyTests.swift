import BlueCapKit
import CoreBluetooth
import XCTest

/// One file can import CoreBluetooth and BlueCapKit, and CoreBluetooth has Foundation.
final class VocabularyTests: XCTestCase {
    /// `GATTTests.CBUUIDTests` has the forms that are accepted, and the message.
    func testATextThatIsNoUUIDDoesNotEndTheProgram() {
        XCTAssertEqual(CBUUID(string: "0x180D"), CBUUID(string: "180D"))
        XCTAssertNotEqual(CBUUID(string: "18OD"), CBUUID(string: "180O"))
        XCTAssertNotEqual(CBUUID(data: Data([1])), CBUUID(data: Data([1, 2, 3])))
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
}
