import BlueCapReactor
import XCTest

@testable import BlueCapDBus

final class ObjectPathTests: XCTestCase {
    func testOnlyWellFormedTextsArePaths() {
        for text in ["/", "/a", "/org/bluez/hci0/dev_00_1A"] { XCTAssertNotNil(ObjectPath(validating: text), text) }
        for text in ["", "a", "/a/", "//", "/a//b", "/a-b", "/ä", "/a\u{0}b", "/a b"] {
            XCTAssertNil(ObjectPath(validating: text), text)
        }
    }

    func testParentsAndElements() {
        let path: ObjectPath = "/org/bluez/hci0"
        XCTAssertEqual(path.parent, "/org/bluez")
        XCTAssertEqual(path.parent?.parent?.parent, .root)
        XCTAssertNil(ObjectPath.root.parent)
        XCTAssertEqual(path.lastElement, "hci0")
        XCTAssertEqual(ObjectPath.root.lastElement, "")
        XCTAssertEqual(ObjectPath.root.appending("org").appending("bluez"), "/org/bluez")
    }

    func testBelowMeansByWholeElements() {
        XCTAssertTrue(ObjectPath("/a/b/c").isBelow("/a"))
        XCTAssertTrue(ObjectPath("/a").isBelow(.root))
        XCTAssertFalse(ObjectPath("/ab").isBelow("/a"))
        XCTAssertFalse(ObjectPath("/a").isBelow("/a"))
        XCTAssertFalse(ObjectPath.root.isBelow(.root))
    }
}

final class BusAddressTests: XCTestCase {
    func testTheSystemBusIsWhereTheEnvironmentSays() {
        XCTAssertEqual(
            BusAddress.system.resolved(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/x"]), "unix:path=/x")
        for environment in [[:], ["DBUS_SYSTEM_BUS_ADDRESS": ""]] {
            XCTAssertEqual(
                BusAddress.system.resolved(environment: environment), "unix:path=/var/run/dbus/system_bus_socket")
        }
    }

    func testTheSessionBusIsWhereTheEnvironmentSays() {
        XCTAssertEqual(
            BusAddress.session.resolved(environment: ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"]), "unix:path=/x")
        XCTAssertEqual(BusAddress.session.resolved(environment: ["XDG_RUNTIME_DIR": "/r"]), "unix:path=/r/bus")
    }

    func testAnotherAddressIsTakenAsItIs() {
        XCTAssertEqual(BusAddress.custom("tcp:host=h").resolved(environment: [:]), "tcp:host=h")
    }
}

final class MatchRuleTests: XCTestCase {
    private let full = MatchRule(
        sender: "org.bluez", path: "/a", pathNamespace: "/b", interface: "i.j", member: "M", arg0: "it's, 'so'")

    func testTheTextIsWhatTheBusReads() {
        XCTAssertEqual(MatchRule().text, "type='signal'")
        XCTAssertEqual(
            full.text,
            #"type='signal',sender='org.bluez',path='/a',path_namespace='/b',interface='i.j',member='M',arg0='it'\''s, '\''so'\'''"#
        )
    }

    func testTheTextIsReadBack() {
        XCTAssertEqual(MatchRule(parsing: full.text), full)
        XCTAssertEqual(MatchRule(parsing: MatchRule().text), MatchRule())
        XCTAssertNil(MatchRule(parsing: "type='method_call'"))
        XCTAssertNil(MatchRule(parsing: "colour='red'"))
        XCTAssertNil(MatchRule(parsing: "path='not a path'"))
        XCTAssertNil(MatchRule(parsing: "member='unfinished"))
    }

    func testEachPartOfARuleIsCompared() {
        let signal = Message.signal(path: "/a/b", interface: "i.j", member: "M") { $0.string("first") }
        func matches(_ rule: MatchRule) -> Bool { CompiledRule(rule).matches(signal) }

        XCTAssertTrue(matches(MatchRule()))
        XCTAssertTrue(matches(MatchRule(path: "/a/b", interface: "i.j", member: "M", arg0: "first")))
        XCTAssertTrue(matches(MatchRule(pathNamespace: "/a")))
        XCTAssertTrue(matches(MatchRule(pathNamespace: "/a/b")))
        XCTAssertTrue(matches(MatchRule(pathNamespace: "/")))
        XCTAssertFalse(matches(MatchRule(pathNamespace: "/a/b/c")))
        XCTAssertFalse(matches(MatchRule(pathNamespace: "/a/bc")))
        XCTAssertFalse(matches(MatchRule(path: "/a")))
        XCTAssertFalse(matches(MatchRule(interface: "i")))
        XCTAssertFalse(matches(MatchRule(member: "N")))
        XCTAssertFalse(matches(MatchRule(arg0: "second")))
        XCTAssertFalse(matches(MatchRule(sender: ":1.1")))
    }

    func testACallMatchesNoRule() {
        let call = Message.call(destination: nil, path: "/", interface: "i.j", member: "M")
        XCTAssertFalse(CompiledRule(MatchRule()).matches(call))
    }
}

final class NameTableTests: XCTestCase {
    func testTheFirstToAskOwnsAndTheNextWaits() {
        var table = NameTable()
        XCTAssertEqual(table.request("n", by: "a", flags: []).0, .primaryOwner)
        XCTAssertEqual(table.request("n", by: "a", flags: []).0, .alreadyOwner)
        XCTAssertEqual(table.request("n", by: "b", flags: []).0, .inQueue)
        XCTAssertEqual(table.request("n", by: "c", flags: .doNotQueue).0, .exists)
        XCTAssertEqual(table.owner(of: "n"), "a")

        let (answer, change) = table.release("n", by: "a")
        XCTAssertEqual(answer, 1)
        XCTAssertEqual(change, NameTable.Change(name: "n", old: "a", new: "b"))
        XCTAssertEqual(table.release("n", by: "a").0, 3)
        XCTAssertEqual(table.release("m", by: "a").0, 2)
    }

    func testAnOwnerThatAllowsItIsReplacedByOneThatWantsIt() {
        var table = NameTable()
        _ = table.request("n", by: "a", flags: .allowReplacement)
        let (answer, change) = table.request("n", by: "b", flags: .replaceExisting)
        XCTAssertEqual(answer, .primaryOwner)
        XCTAssertEqual(change, NameTable.Change(name: "n", old: "a", new: "b"))
        XCTAssertEqual(table.request("n", by: "c", flags: [.replaceExisting, .doNotQueue]).0, .exists)
        // The one that was replaced waits.
        XCTAssertEqual(table.release("n", by: "b").1, NameTable.Change(name: "n", old: "b", new: "a"))
    }

    func testWhoGoesLosesEverything() {
        var table = NameTable()
        _ = table.request("m", by: "a", flags: [])
        _ = table.request("n", by: "b", flags: [])
        _ = table.request("n", by: "a", flags: [])
        XCTAssertEqual(table.removeOwner("a"), [NameTable.Change(name: "m", old: "a", new: nil)])
        XCTAssertEqual(table.names, ["n"])
        XCTAssertEqual(table.removeOwner("b"), [NameTable.Change(name: "n", old: "b", new: nil)])
    }
}
