import Bluejay
import Dispatch
import Foundation

let heartRate = ServiceIdentifier(uuid: "180D")
let location = CharacteristicIdentifier(uuid: "2A38", service: heartRate)
let measurement = CharacteristicIdentifier(uuid: "2A37", service: heartRate)

let bluejay = Bluejay()
bluejay.start()
bluejay.scan(
    serviceIdentifiers: [heartRate],
    discovery: { discovery, _ in
        .connect(discovery) { result in
            guard case .success(let strap) = result else { return print(result) }
            print("connected to", strap.name)
            bluejay.run(backgroundTask: { strap in
                let place: UInt8 = try strap.read(from: location)
                print("worn at place", place)
                try strap.listen(to: measurement) { (value: Data) in
                    print(value.dropFirst().first ?? 0, "beats per minute")
                    return .done
                }
            }) { result in
                if case .failure(let error) = result { print(error.localizedDescription) }
                bluejay.disconnect { _ in exit(0) }
            }
        }
    },
    stopped: { _, error in
        if let error { print(error.localizedDescription) }
    })
dispatchMain()
