import GatewayCore
import XCTest
final class PCore: XCTestCase { func testP() { XCTAssertEqual(DeviceName("C0:FF:EE:00:18:0D")?.address, "C0:FF:EE:00:18:0D") } }
