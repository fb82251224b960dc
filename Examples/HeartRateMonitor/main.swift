import CoreBluetooth

// What the views of the app would do.
let monitor = HeartRateMonitor()
monitor.onStatus = { print($0) }
monitor.onLocation = { print("worn at the \($0)") }
monitor.onReading = { print($0.beatsPerMinute, "beats per minute") }
RunLoop.main.run()
