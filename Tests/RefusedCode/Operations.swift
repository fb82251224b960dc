// Code that does not compile, or with a warning, and what the compiler has to say: see Scripts/code-blocks.

import BlueCapKit
import Foundation

func use(_ peripheral: Peripheral, _ identifier: CharacteristicIdentifier) async throws {
    let number: Int = try await peripheral.read(identifier)  // refused: write Int8, Int16, Int32 or Int64
    let count: UInt = try await peripheral.read(identifier)  // refused: write UInt8, UInt16, UInt32 or UInt64
    print(number, count)
    peripheral.write(Data(), to: identifier)  // refused: not marked with 'await'
    try await peripheral.write(Data([1]), to: identifier, timeout: 5)  // refused: timeout: .seconds(5)
    let data: Data = try await peripheral.read(identifier, timeout: 5)  // refused: timeout: .seconds(5)
    try await peripheral.pair(timeout: 60)  // refused: timeout: .seconds(5)
    peripheral.connect()  // refused: not marked with 'await'
    print(data)
    try await peripheral.run(timeout: 5) { try await $0.write(data, to: identifier) }  // refused: timeout: .seconds(5)
    try await peripheral.run { connected in
        try await connected.write(data, to: identifier, timeout: 5)  // refused: expected argument type 'Duration'
    }
    try await peripheral.stopNotifications(identifier, timeout: 5)  // refused: no 'async' operations
}

func use(_ characteristic: Characteristic) async throws {
    characteristic.write(data: Data())  // refused: not marked with 'await'
    try await characteristic.write(data: Data(), timeout: 5)  // refused: timeout: .seconds(5)
    let data = try await characteristic.read(timeout: 5)  // refused: timeout: .seconds(5)
    try await characteristic.descriptors[0].write(data: data, timeout: 5)  // refused: no 'async' operations
}
