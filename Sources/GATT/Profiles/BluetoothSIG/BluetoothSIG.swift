/// The Bluetooth SIG's own services that people meet most, by the "GATT Specification Supplement" and "Assigned Numbers".
public enum BluetoothSIG {
    static let tag = "Bluetooth SIG"

    /// What is known of each service and its characteristics, to be added to a ``ProfileManager``.
    public static var serviceProfiles: [ServiceProfile] {
        [
            ConfiguredServiceProfile<GenericAccessService>(
                StringCharacteristicProfile<GenericAccessService.DeviceName>(),
                RawCharacteristicProfile<GenericAccessService.Appearance>(),
                RawArrayCharacteristicProfile<GenericAccessService.PreferredConnectionParameters>()),
            ConfiguredServiceProfile<DeviceInformationService>(
                StringCharacteristicProfile<DeviceInformationService.ManufacturerName>(),
                StringCharacteristicProfile<DeviceInformationService.ModelNumber>(),
                StringCharacteristicProfile<DeviceInformationService.SerialNumber>(),
                StringCharacteristicProfile<DeviceInformationService.HardwareRevision>(),
                StringCharacteristicProfile<DeviceInformationService.FirmwareRevision>(),
                StringCharacteristicProfile<DeviceInformationService.SoftwareRevision>(),
                RawCharacteristicProfile<DeviceInformationService.SystemID>(),
                ConfiguredCharacteristicProfile<DeviceInformationService.PnPID>(),
                CharacteristicProfile(
                    uuid: "2A2A", name: "IEEE 11073-20601 Regulatory Certification Data List",
                    permissions: [.readable], properties: [.read])),
            ConfiguredServiceProfile<BatteryService>(RawCharacteristicProfile<BatteryService.Level>()),
            ConfiguredServiceProfile<HeartRateService>(
                ConfiguredCharacteristicProfile<HeartRateService.Measurement>(),
                RawCharacteristicProfile<HeartRateService.BodySensorLocation>(),
                RawCharacteristicProfile<HeartRateService.ControlPoint>()),
            ConfiguredServiceProfile<HealthThermometerService>(
                ConfiguredCharacteristicProfile<HealthThermometerService.TemperatureMeasurement>(),
                RawCharacteristicProfile<HealthThermometerService.TemperatureType>(),
                ConfiguredCharacteristicProfile<HealthThermometerService.IntermediateTemperature>(),
                RawCharacteristicProfile<HealthThermometerService.MeasurementInterval>()),
            ConfiguredServiceProfile<CurrentTimeService>(
                ConfiguredCharacteristicProfile<CurrentTimeService.CurrentTime>(),
                RawPairCharacteristicProfile<CurrentTimeService.LocalTimeInformation>(),
                RawArrayCharacteristicProfile<CurrentTimeService.ReferenceTimeInformation>()),
            EnvironmentalSensingService.profile,
            ConfiguredServiceProfile<CyclingSpeedAndCadenceService>(
                ConfiguredCharacteristicProfile<CyclingSpeedAndCadenceService.Measurement>(),
                RawCharacteristicProfile<CyclingSpeedAndCadenceService.Feature>(),
                RawCharacteristicProfile<SensorLocation>(), speedAndCadenceControlPoint),
            ConfiguredServiceProfile<RunningSpeedAndCadenceService>(
                ConfiguredCharacteristicProfile<RunningSpeedAndCadenceService.Measurement>(),
                RawCharacteristicProfile<RunningSpeedAndCadenceService.Feature>(),
                RawCharacteristicProfile<SensorLocation>(), speedAndCadenceControlPoint),
            ConfiguredServiceProfile<LinkLossService>(RawCharacteristicProfile<LinkLossService.AlertLevel>()),
            ConfiguredServiceProfile<ImmediateAlertService>(
                RawCharacteristicProfile<ImmediateAlertService.AlertLevel>()),
            ConfiguredServiceProfile<TxPowerService>(RawCharacteristicProfile<TxPowerService.Level>()),
        ]
    }

    /// Requests and their responses have a form for each procedure; people see the bytes.
    private static var speedAndCadenceControlPoint: CharacteristicProfile {
        CharacteristicProfile(
            uuid: "2A55", name: "SC Control Point", permissions: [.writeable], properties: [.write, .indicate])
    }
}
