import BlueZ
import Foundation
import GATT

extension AdvertisementData {
    init(_ data: AdvertisingData) {
        self.init()
        kind = data.kind == .broadcast ? .broadcast : .peripheral
        localName = data.localName
        serviceUUIDs = data.serviceUUIDs
        solicitedUUIDs = data.solicitedServiceUUIDs
        manufacturerData = data.manufacturerData
        serviceData = data.serviceData
        scanResponseServiceUUIDs = data.scanResponse.serviceUUIDs
        scanResponseManufacturerData = data.scanResponse.manufacturerData
        scanResponseServiceData = data.scanResponse.serviceData
        appearance = data.appearance
        if data.includesTxPower { includes.insert(.txPower) }
        txPower = data.txPower.map { Int16(clamping: $0) }
        minInterval = data.interval.map { UInt32(($0.lowerBound * 1_000).rounded()) }
        maxInterval = data.interval.map { UInt32(($0.upperBound * 1_000).rounded()) }
        isDiscoverable = data.isDiscoverable && data.kind == .connectable ? true : nil
        timeout = data.timeout.map { UInt16(clamping: $0) }
        duration = data.duration.map { UInt16(clamping: $0) }
        secondaryChannel = data.secondaryChannel.flatMap { SecondaryChannel(rawValue: $0.rawValue) }
    }
}

extension AdvertisingLimits {
    init(_ capabilities: AdvertisingCapabilities, of daemon: DaemonCapabilities) {
        active = capabilities.activeInstances
        available = capabilities.supportedInstances
        includes = capabilities.supportedIncludes
        secondaryChannels = (capabilities.supportedSecondaryChannels ?? []).compactMap {
            AdvertisingData.SecondaryChannel(rawValue: $0)
        }
        honoursIntervalAndPower = capabilities.supportedFeatures != nil
        txPower = capabilities.powers
        maximumLength = daemon.maximumAdvertisingLength
        maximumLengthOnSecondaryChannel = daemon.maximumExtendedAdvertisingLength
        maximumScanResponseLength = daemon.maximumScanResponseLength
        honoursScanResponse = daemon.scanResponseFields
    }
}
