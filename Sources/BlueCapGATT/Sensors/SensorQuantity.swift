/// What a ``SensorValue`` is a value of, such as a temperature.
///
/// The names in ``rawValue`` are those of the objects of BTHome v2, in lower case with `_` between the words. BTHome uses the
/// names battery, gas, moisture and power for a number and for a state; here the state's are ``batteryLow``, ``gasDetected``,
/// ``moistureDetected`` and ``powerOn``, so that the values of one quantity are all of one type.
///
/// Other decoders can have other quantities:
///
/// ```swift
/// let windChill: SensorQuantity = "wind_chill"
/// ```
public struct SensorQuantity: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
    /// The name, such as `temperature` or `pm2_5`.
    public let rawValue: String

    /// Creates a quantity from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Creates a quantity from its name.
    public init(stringLiteral value: String) { rawValue = value }

    // MARK: From the environment
    /// A temperature, in °C.
    public static let temperature: SensorQuantity = "temperature"
    /// The relative humidity of the air, in %.
    public static let humidity: SensorQuantity = "humidity"
    /// The pressure of the air, in hPa.
    public static let pressure: SensorQuantity = "pressure"
    /// The dew point, in °C.
    public static let dewPoint: SensorQuantity = "dewpoint"
    /// The illuminance, in lx.
    public static let illuminance: SensorQuantity = "illuminance"
    /// The brightness in steps: 0 dark, 1 twilight, 2 bright.
    public static let lightLevel: SensorQuantity = "light_level"
    /// The UV index, without a unit.
    public static let uvIndex: SensorQuantity = "uv_index"
    /// The moisture of soil or of a material, in %.
    public static let moisture: SensorQuantity = "moisture"
    /// The electric conductivity of soil, in µS/cm.
    public static let conductivity: SensorQuantity = "conductivity"
    /// The amount of rain, in mm.
    public static let precipitation: SensorQuantity = "precipitation"
    /// The concentration of carbon dioxide, in ppm.
    public static let co2: SensorQuantity = "co2"
    /// The concentration of volatile organic compounds, in µg/m³.
    public static let tvoc: SensorQuantity = "tvoc"
    /// The concentration of particles up to 2.5 µm, in µg/m³.
    public static let pm2_5: SensorQuantity = "pm2_5"
    /// The concentration of particles up to 10 µm, in µg/m³.
    public static let pm10: SensorQuantity = "pm10"

    // MARK: Energy and consumption
    /// The charge of the sensor's battery, in %.
    public static let battery: SensorQuantity = "battery"
    /// A voltage, in V; of Ruuvi, Eddystone, ATC1441 and pvvx, that of the battery.
    public static let voltage: SensorQuantity = "voltage"
    /// An electric current, in A.
    public static let current: SensorQuantity = "current"
    /// An electric power, in W.
    public static let power: SensorQuantity = "power"
    /// An amount of energy, in kWh.
    public static let energy: SensorQuantity = "energy"
    /// An amount of gas, in m³.
    public static let gas: SensorQuantity = "gas"
    /// An amount of water, in L.
    public static let water: SensorQuantity = "water"
    /// A volume, in L or mL.
    public static let volume: SensorQuantity = "volume"
    /// A stored volume, in L.
    public static let volumeStorage: SensorQuantity = "volume_storage"
    /// A flow, in m³/h.
    public static let volumeFlowRate: SensorQuantity = "volume_flow_rate"

    // MARK: Mechanics and counts
    /// An acceleration, in m/s².
    public static let acceleration: SensorQuantity = "acceleration"
    /// The acceleration along the sensor's x axis, in g.
    public static let accelerationX: SensorQuantity = "acceleration_x"
    /// The acceleration along the sensor's y axis, in g.
    public static let accelerationY: SensorQuantity = "acceleration_y"
    /// The acceleration along the sensor's z axis, in g.
    public static let accelerationZ: SensorQuantity = "acceleration_z"
    /// An angular velocity, in °/s.
    public static let gyroscope: SensorQuantity = "gyroscope"
    /// An angle of rotation, in °.
    public static let rotation: SensorQuantity = "rotation"
    /// A speed of rotation, in rpm.
    public static let rotationalSpeed: SensorQuantity = "rotational_speed"
    /// A direction, such as that of the wind, in °.
    public static let direction: SensorQuantity = "direction"
    /// A speed, in m/s.
    public static let speed: SensorQuantity = "speed"
    /// A distance, in mm or m.
    public static let distance: SensorQuantity = "distance"
    /// A mass, in kg or lb.
    public static let mass: SensorQuantity = "mass"
    /// The electric impedance of a body, in Ω.
    public static let impedance: SensorQuantity = "impedance"
    /// A duration, in s.
    public static let duration: SensorQuantity = "duration"
    /// A time, in seconds since 1970-01-01 00:00:00 UTC.
    public static let timestamp: SensorQuantity = "timestamp"
    /// A count of anything, without a unit.
    public static let count: SensorQuantity = "count"
    /// How many movements a RuuviTag has counted, from 0 to 254, after which it begins again at 0.
    public static let movementCount: SensorQuantity = "movement_count"

    // MARK: About the sender
    /// The number of a channel.
    public static let channel: SensorQuantity = "channel"
    /// The power at which the sensor sends, in dBm.
    public static let txPower: SensorQuantity = "tx_power"
    /// How many advertisements the beacon has sent since it was switched on.
    public static let advertisementCount: SensorQuantity = "advertisement_count"
    /// The time since the beacon was switched on, in s.
    public static let uptime: SensorQuantity = "uptime"
    /// A number that changes with the settings of the sensor.
    public static let settingsRevision: SensorQuantity = "settings_revision"
    /// The manufacturer's number of the type of the sensor.
    public static let deviceTypeID: SensorQuantity = "device_type_id"
    /// The identifier of the model, as text of hexadecimal digits.
    public static let modelID: SensorQuantity = "model_id"
    /// The name of the type of a message that the device sends to other devices.
    public static let message: SensorQuantity = "message"
    /// The version of the firmware, as text such as `4.2.1.0`.
    public static let firmwareVersion: SensorQuantity = "firmware_version"
    /// The byte of flags of the pvvx format, from 0 to 255: bit 0 the reed switch, bit 1 the trigger's output, bit 2 whether
    /// measurements control this output, bits 3 and 4 whether the temperature and the humidity have triggered it.
    public static let statusFlags: SensorQuantity = "status_flags"
    /// A text of the sensor's.
    public static let text: SensorQuantity = "text"
    /// Bytes of the sensor's, as text: two lower-case hexadecimal digits each.
    public static let raw: SensorQuantity = "raw"

    // MARK: States and events
    /// `true`: the battery is low.
    public static let batteryLow: SensorQuantity = "battery_low"
    /// `true`: the battery is being charged.
    public static let batteryCharging: SensorQuantity = "battery_charging"
    /// `true`: carbon monoxide is detected.
    public static let carbonMonoxide: SensorQuantity = "carbon_monoxide"
    /// `true`: it is cold.
    public static let cold: SensorQuantity = "cold"
    /// `true`: connected.
    public static let connectivity: SensorQuantity = "connectivity"
    /// `true`: the door is open.
    public static let door: SensorQuantity = "door"
    /// `true`: the garage door is open.
    public static let garageDoor: SensorQuantity = "garage_door"
    /// `true`: gas is detected.
    public static let gasDetected: SensorQuantity = "gas_detected"
    /// `true`: on.
    public static let genericBoolean: SensorQuantity = "generic_boolean"
    /// `true`: it is hot.
    public static let heat: SensorQuantity = "heat"
    /// `true`: light is detected.
    public static let light: SensorQuantity = "light"
    /// `true`: unlocked.
    public static let lock: SensorQuantity = "lock"
    /// `true`: it is wet.
    public static let moistureDetected: SensorQuantity = "moisture_detected"
    /// `true`: motion is detected.
    public static let motion: SensorQuantity = "motion"
    /// `true`: the sensor moves.
    public static let moving: SensorQuantity = "moving"
    /// `true`: the room is occupied.
    public static let occupancy: SensorQuantity = "occupancy"
    /// `true`: open.
    public static let opening: SensorQuantity = "opening"
    /// `true`: plugged in.
    public static let plug: SensorQuantity = "plug"
    /// `true`: there is power.
    public static let powerOn: SensorQuantity = "power_on"
    /// `true`: at home.
    public static let presence: SensorQuantity = "presence"
    /// `true`: there is a problem.
    public static let problem: SensorQuantity = "problem"
    /// `true`: it runs.
    public static let running: SensorQuantity = "running"
    /// `true`: safe.
    public static let safety: SensorQuantity = "safety"
    /// `true`: smoke is detected.
    public static let smoke: SensorQuantity = "smoke"
    /// `true`: a sound is detected.
    public static let sound: SensorQuantity = "sound"
    /// `true`: the weight on a scale no longer changes.
    public static let stabilized: SensorQuantity = "stabilized"
    /// `true`: the sensor has been tampered with.
    public static let tamper: SensorQuantity = "tamper"
    /// `true`: a vibration is detected.
    public static let vibration: SensorQuantity = "vibration"
    /// `true`: the window is open.
    public static let window: SensorQuantity = "window"
    /// A button was pressed, as text: `press`, `double_press`, `triple_press`, `long_press`, `long_double_press`,
    /// `long_triple_press` or `hold_press`.
    public static let button: SensorQuantity = "button"
    /// A dimmer was turned, as text: `rotate_left` or `rotate_right`.
    public static let dimmer: SensorQuantity = "dimmer"
    /// By how many steps the dimmer of the same number was turned, at least 0.
    public static let dimmerSteps: SensorQuantity = "dimmer_steps"
    /// A command, as text: `off`, `on`, `toggle`, `step_up` or `step_down`.
    public static let command: SensorQuantity = "command"
    /// The number of steps of the command of the same number.
    public static let commandSteps: SensorQuantity = "command_steps"
}
