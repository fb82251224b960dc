/// Common services of the Bluetooth SIG, by the "GATT Specification Supplement" and "Assigned Numbers".
public enum BluetoothSIG {
    static let tag = "Bluetooth SIG"

    /// The profiles of all services with their characteristics, for a `ProfileManager`.
    public static var serviceProfiles: [ServiceProfile] {
        [
            GenericAccessService.profile, DeviceInformationService.profile, BatteryService.profile,
            HeartRateService.profile, HealthThermometerService.profile, CurrentTimeService.profile,
            EnvironmentalSensingService.profile, CyclingSpeedAndCadenceService.profile,
            RunningSpeedAndCadenceService.profile, LinkLossService.profile, ImmediateAlertService.profile,
            TxPowerService.profile,
        ]
    }
}
