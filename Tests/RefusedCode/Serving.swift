// As in Operations.swift, for the peripheral role.

import BlueCapKit
import Foundation

func serve(
    _ manager: PeripheralManager, _ service: MutableService, _ region: BeaconRegion, _ data: AdvertisingData
) async throws {
    manager.add(service)  // refused: not marked with 'await'
    try await manager.add(service, timeout: 5)  // refused: timeout: .seconds(5)
    manager.startAdvertising("Sensor")  // refused: not marked with 'await'
    try await manager.startAdvertising("Sensor", timeout: 5)  // refused: timeout: .seconds(5)
    try await manager.startAdvertising(region, timeout: 5)  // refused: no 'async' operations
    let sent = try await manager.startAdvertising(data, timeout: 5)  // refused: timeout: .seconds(5)
    try await sent.stop(timeout: 5)  // refused: no 'async' operations
    try await manager.setPairable(true, timeout: 60)  // refused: no 'async' operations
    try await manager.stopAdvertising(timeout: 5)  // refused: no 'async' operations
}
