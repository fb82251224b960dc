import XCTest

@testable import BlueCapKit

final class RestorationStateTests: XCTestCase {
    private let identifier = RestorationSamples.identifier

    private func damage(of text: String, for identifier: String? = nil) -> RestorationDamage? {
        do {
            _ = try RestorationState(decoding: Data(text.utf8), for: identifier ?? self.identifier)
            return nil
        } catch {
            return error
        }
    }

    private func text(_ state: RestorationState) throws -> String {
        String(decoding: try state.encoded(for: identifier), as: UTF8.self)
    }

    func testWhatIsKeptComesBack() throws {
        for state in [RestorationSamples.full, RestorationSamples.small, RestorationState()] {
            XCTAssertEqual(try RestorationState(decoding: state.encoded(for: identifier), for: identifier), state)
        }
    }

    func testWhatHasNoLimitNeedsNoNumber() throws {
        let text = try text(RestorationState(connections: [RestorationSamples.strap]))
        XCTAssertFalse(text.contains("Retries"), text)
        XCTAssertFalse(text.contains("connectionTimeout"), text)
    }

    func testTheSameStateIsTheSameFile() throws {
        XCTAssertEqual(try text(RestorationSamples.full), try text(RestorationSamples.full))
    }

    func testEveryBeginningOfAFileIsRefused() throws {
        let data = try RestorationSamples.full.encoded(for: identifier)
        for count in 0..<data.count {
            XCTAssertThrowsError(try RestorationState(decoding: data.prefix(count), for: identifier), "\(count) bytes")
        }
    }

    func testBytesThatFellOverNeverTrap() throws {
        let data = try RestorationSamples.full.encoded(for: identifier)
        for index in data.indices {
            for bit in [0x01, 0x20, 0x80] as [UInt8] {
                var broken = data
                broken[index] ^= bit
                _ = try? RestorationState(decoding: broken, for: identifier)
            }
        }
    }

    func testALaterVersionIsLeftToThoseWhoKnowIt() throws {
        let later = """
            {"format": "bluecap central state", "version": 2, "identifier": "\(identifier)", "connections": "elsewhere"}
            """
        XCTAssertEqual(damage(of: later), .newer(version: 2))
    }

    func testTheFileOfAnotherIdentifierIsForeign() throws {
        XCTAssertEqual(damage(of: try text(RestorationSamples.full), for: "us.gnos.other"), .foreign)
    }

    func testAnotherProgramsFileIsForeign() throws {
        XCTAssertEqual(
            damage(of: #"{"format": "bookmarks", "version": 1, "identifier": "\#(identifier)"}"#), .foreign)
    }

    func testValuesThatNobodyCanHaveAskedForAreRefused() throws {
        let text = try text(RestorationSamples.full)
        for (value, wrong) in [
            ("\"54:6C:0E:80:3F:01\"", "\"54:6C:0E:80:3F\""), ("\"public\"", "\"secret\""), ("12.5", "-12.5"),
            ("65534", "65536"), ("\"2A37\"", "\"heart\""), ("-70", "-700"),
        ] {
            XCTAssertTrue(text.contains(value), value)
            guard case .unreadable = damage(of: text.replacingOccurrences(of: value, with: wrong)) else {
                XCTFail("\(wrong) was taken")
                continue
            }
        }
    }

    func testBondsAreKeptWithoutKeysAndAFileWithoutThemIsRead() throws {
        let address = try XCTUnwrap(BluetoothAddress("C0:26:DF:12:34:56"))
        let state = RestorationState(bonds: [.init(address: address, addressType: .random)])
        let data = try state.encoded(for: "x")
        XCTAssertEqual(try RestorationState(decoding: data, for: "x"), state)
        let empty = try RestorationState().encoded(for: "x")
        XCTAssertNil(String(decoding: empty, as: UTF8.self).range(of: "bonds"))
        XCTAssertNil(try RestorationState(decoding: empty, for: "x").bonds)
    }
}

final class RestorationPlaceTests: XCTestCase {
    private func name(_ identifier: String) -> String { RestorationPlace(identifier: identifier, root: "/r").name }

    func testAReverseDomainNameIsItsFilesName() {
        let place = RestorationPlace(identifier: "us.gnos.BlueCap.documentation-manager", root: "/state/bluecap")
        XCTAssertEqual(place.file, "/state/bluecap/central/us.gnos.BlueCap.documentation-manager.json")
    }

    func testNoIdentifierLeavesTheFolder() {
        XCTAssertEqual(name(".."), "%2E.")
        XCTAssertEqual(name("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd")
        XCTAssertEqual(name("a\0b\n%"), "a%00b%0A%25")
        XCTAssertEqual(name("kitchen \u{1F525}"), "kitchen%20%F0%9F%94%A5")
    }

    func testIdentifiersThatDifferHaveFilesThatDiffer() {
        let long = String(repeating: "x", count: 300)
        let identifiers = ["a b", "a_b", "a%20b", ".a", "%2Ea", long + "1", long + "2", long, String(long.prefix(200))]
        XCTAssertEqual(Set(identifiers.map(name)).count, identifiers.count)
    }

    func testALongIdentifierStillHasAFile() {
        let place = RestorationPlace(identifier: String(repeating: "\u{1F525}", count: 5_000), root: "/r")
        let longest = [place.aside(1_000_000), place.lock, place.draft].map { ($0 as NSString).lastPathComponent }
        XCTAssertTrue(longest.allSatisfy { $0.utf8.count <= 255 }, "\(longest)")
    }

    func testTheStateHomeIsTheEnvironmentsOrTheUsualOne() {
        XCTAssertEqual(RestorationPlace.root(environment: ["XDG_STATE_HOME": "/s"], home: "/home/u"), "/s/bluecap")
        for home in ["", "relative/path", "~/state"] {
            XCTAssertEqual(
                RestorationPlace.root(environment: ["XDG_STATE_HOME": home], home: "/home/u"),
                "/home/u/.local/state/bluecap")
        }
        XCTAssertEqual(RestorationPlace.root(environment: [:], home: "/home/u"), "/home/u/.local/state/bluecap")
    }
}
