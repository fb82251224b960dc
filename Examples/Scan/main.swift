import BlueCapKit
import Dispatch

let manager = CentralManager()
manager.whenStateChanges().flatMap { state -> FutureStream<Peripheral> in
    guard state == .poweredOn else { throw CentralManagerError.isPoweredOff }
    return manager.startScanning()
}.onComplete { result in
    switch result {
    case .success(let peripheral): print(peripheral.address, peripheral.rssi ?? 127, peripheral.name)
    case .failure(let error): print(error)
    }
}
dispatchMain()
