import BlueZSimulator
import BlueCapFutures
import TestBasics
import XCTest

@testable import BlueCapKit

/// Whatever comes together: every future is settled, and once Bluetooth is well, BlueZ has what the manager says.
final class PeripheralSoakTests: PeripheralStage {
    private final class Course {
        let manager: PeripheralManager
        let services: [MutableService]
        var isDead = false
        var pulled: Set<Int> = []
        var off: Set<Int> = []
        var log: [String] = []
        var open: [(String, () -> Bool)] = []
        var phone: CentralLink?

        let adapters: Int

        init(_ manager: PeripheralManager, _ services: [MutableService], adapters: Int) {
            self.manager = manager
            self.adapters = adapters
            self.services = services
        }

        func expect<T>(_ what: String, _ future: Future<T>) {
            log.append(what)
            open.append((what, { future.completed }))
        }
    }

    func testEverythingIsSettledAndComesBack() {
        var random = TestRandom(self)
        for round in 0..<80 {
            let adapters = 1 + round % 2
            simulator = Simulator.inProcess(
                room: .empty, adapters: (0..<adapters).map { VirtualAdapter(index: $0) })
            play(adapters, &random, "round \(round)")
        }
    }

    func testRequestsOfManyThreadsAreAllSettled() {
        let manager = manager
        let services = [Self.heart(), Self.battery()]
        let left = Locked(3)
        let open = Locked<[Future<Void>]>([])
        for thread in 0..<3 {
            Thread.detachNewThread {
                for number in 0..<400 {
                    let service = services[(number + thread) % services.count]
                    var future: Future<Void>?
                    switch number % 5 {
                    case 0, 1: future = manager.add(service)
                    case 2: manager.remove(service)
                    case 3: future = manager.startAdvertising("Strap")
                    default: future = manager.stopAdvertising()
                    }
                    if let future { open.withLock { $0.append(future) } }
                    try? service.characteristics[0].update(withData: Data([1]))
                }
                left.withLock { $0 -= 1 }
            }
        }
        while left.withLock({ $0 > 0 }) { simulator.advance(by: 0.001) }
        for service in services { manager.add(service) }
        simulator.advance(by: 60)
        XCTAssertTrue(open.withLock { $0.allSatisfy(\.completed) })
        check(Course(manager, services, adapters: 1), "")
        XCTAssertTrue(services.allSatisfy(\.isAdded))
        manager.removeAllServices()
        manager.stopAdvertising()
        simulator.advance(by: 60)
        check(Course(manager, services, adapters: 1), "")
    }

    /// An indication that no central has confirmed is sent again. A notification is sent once BlueZ has accepted it: if it then has
    /// no link, the notification is lost.
    func testWhoeverComesAndGoesValuesKeepTheirOrderAndNoIndicationIsLost() throws {
        var random = TestRandom(self)
        for round in 0..<10 {
            simulator = Simulator.inProcess(room: .empty)
            let indicated = try receive(.indicate, overSocket: false, &random)
            XCTAssertEqual(Set(indicated.flatMap { $0 }).count, 200, "round \(round)")
            simulator = Simulator.inProcess(room: .empty)
            let notified = try receive(.notify, overSocket: round % 2 == 0, &random)
            for link in indicated + notified { XCTAssertEqual(link, link.sorted(), "round \(round)") }
        }
    }

    private func receive(
        _ properties: CBCharacteristicProperties, overSocket: Bool, _ random: inout TestRandom
    ) throws -> [[UInt8]] {
        let service = Self.heart(properties)
        let measurement = service.characteristics[0]
        measurement.sendsUpdatesOverSocket = overSocket
        try serve(service)
        var links: [CentralLink] = []
        for number in UInt8(0)..<200 {
            try measurement.update(withData: Data([number]))
            if random.below(3) == 0 { simulator.advance(by: Double(random.below(200)) / 1_000) }
            guard random.below(12) == 0 else { continue }
            switch (links.last?.state, random.below(5)) {
            case (.connected?, 0):
                simulator.simulateDaemonDeath()
                simulator.advance(by: 0.1)
                simulator.simulateDaemonReturn()
            case (.connected?, 1): links.last?.vanish(noticedAfter: 0.5)
            case (.connected?, 2): _ = links.last?.unsubscribe(from: "2A37")
            case (.connected?, _): links.last?.disconnect()
            default:
                simulator.advance(by: 1)
                let link = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01"))
                guard simulator.advance(until: { link.state == .connected }, limit: 10) else { continue }
                _ = link.subscribe(to: "2A37", indications: properties == .indicate)
                links.append(link)
            }
        }
        links.last?.disconnect()
        simulator.advance(by: 60)
        let link = phone("C0:FF:EE:00:CE:02")
        _ = result(of: link.subscribe(to: "2A37", indications: properties == .indicate))
        links.append(link)
        try value(of: measurement.whenUpdatesSent())
        simulator.advance(by: 5)
        return links.map { $0.values.flatMap(\.bytes) }
    }

    private func play(_ adapters: Int, _ random: inout TestRandom, _ round: String) {
        let course = Course(
            unreadyManager(), [Self.heart(), Self.battery(), Self.heart([.read, .indicate])],
            adapters: adapters)
        for _ in 0..<60 {
            step(course, &random)
            if random.below(3) > 0 {
                simulator.advance(by: Double(random.below(1_000)) / (random.below(2) == 0 ? 1_000 : 100))
            }
        }
        for index in course.pulled { simulator.simulateAdapterAddition(VirtualAdapter(index: index)) }
        if course.isDead { simulator.simulateDaemonReturn() }
        for index in 0..<adapters { simulator.simulatePowerOn(adapter: index) }
        simulator.advance(by: 120)
        check(course, "\(round): \(course.log.joined(separator: ", "))")
    }

    private func step(_ course: Course, _ random: inout TestRandom) {
        let manager = course.manager
        let service = course.services[random.below(course.services.count)]
        switch random.below(16) {
        case 0, 1, 2: course.expect("add \(service.uuid)", manager.add(service))
        case 3:
            course.log.append("remove \(service.uuid)")
            manager.remove(service)
        case 4: course.expect("start", manager.startAdvertising("Strap"))
        case 5, 6:
            var data = AdvertisingData(localName: "Tag \(random.below(3))")
            if random.below(3) == 0 { data.timeout = .seconds(1 + random.below(5)) }
            course.expect("start \(data.timeout ?? .zero)", manager.startAdvertising(data))
        case 7: course.expect("stop", manager.stopAdvertising(timeout: Double(random.below(50)) / 10))
        case 8:
            guard let running = manager.advertisements.randomElement(using: &random) else { return }
            course.expect("stop one", running.stop())
        case 9:
            let index = random.below(course.adapters)
            let isOff = course.off.insert(index).inserted
            course.log.append("\(isOff ? "off" : "on") \(index)")
            if isOff {
                simulator.simulatePowerOff(adapter: index)
            } else {
                course.off.remove(index)
                simulator.simulatePowerOn(adapter: index)
            }
        case 10:
            course.isDead.toggle()
            course.log.append(course.isDead ? "killed" : "started")
            if course.isDead { simulator.simulateDaemonDeath() } else { simulator.simulateDaemonReturn() }
            if !course.isDead { course.off = [] }
        case 11:
            let index = random.below(course.adapters)
            let isPulled = course.pulled.insert(index).inserted
            course.log.append("\(isPulled ? "pull" : "plug") \(index)")
            if isPulled {
                simulator.simulateAdapterRemoval(index)
            } else {
                course.pulled.remove(index)
                course.off.remove(index)
                simulator.simulateAdapterAddition(VirtualAdapter(index: index))
            }
        case 12:
            guard course.pulled.isEmpty, !course.isDead else { return }
            course.log.append("slow")
            simulator.simulateSlowReplies(by: 1)
            course.expect("add \(service.uuid)", manager.add(service))
            course.expect("start", manager.startAdvertising("Slow"))
            simulator.advance(by: Double(random.below(25)) / 10)
            course.expect("stop", manager.stopAdvertising(timeout: Double(random.below(50)) / 10))
            manager.remove(service)
            if random.below(2) == 0 { course.expect("add \(service.uuid)", manager.add(service)) }
            simulator.advance(by: Double(random.below(25)) / 10)
            simulator.simulateSlowReplies(by: 0)
            simulator.advance(by: 5)
        case 13:
            if random.below(4) == 0 {
                course.log.append("reset")
                manager.reset()
            } else {
                guard let running = manager.advertisements.randomElement(using: &random) else { return }
                course.log.append("change")
                try? running.change(to: AdvertisingData(localName: "Other \(random.below(9))"))
            }
        case 14:
            course.log.append("phone")
            if let phone = course.phone, phone.state == .connected {
                phone.disconnect()
            } else {
                course.phone = simulator.connect(VirtualCentral("C0:FF:EE:00:CE:01"))
                course.phone?.subscribe(to: "2A37")
            }
        default:
            try? service.characteristics[0].update(withData: Data([UInt8(random.below(256))]))
        }
    }

    private func check(_ course: Course, _ place: String) {
        let manager = course.manager
        XCTAssertTrue(manager.poweredOn, manager.stateExplanation + place)
        XCTAssertEqual(course.open.filter { !$0.1() }.map(\.0), [], place)
        let core = manager.session.core.withLock { core in
            (
                served: core.served.count, adding: core.adding.count, advertised: core.advertised.count,
                registered: core.advertised.values.count { $0.advertising != nil }
            )
        }
        XCTAssertEqual(offered().sorted(), manager.services.map { $0.uuid.uuidString }.sorted(), place)
        XCTAssertEqual(core.served, manager.services.count, place)
        XCTAssertEqual(Set(course.services.filter(\.isAdded)), Set(manager.services), place)
        XCTAssertEqual(core.adding, 0, place)
        let running = manager.advertisements
        XCTAssertTrue(running.allSatisfy(\.isOnAir), place)
        XCTAssertEqual(simulator.advertisements.count, running.count, place)
        XCTAssertEqual([core.registered, core.advertised], [running.count, running.count], place)
    }
}
