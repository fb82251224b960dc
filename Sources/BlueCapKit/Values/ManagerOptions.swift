import Foundation
import GATT

/// The `options` of a manager of either role, read once. A wrong value is kept as `problem`, because an initializer
/// cannot fail.
struct ManagerOptions<Failure: SessionError> {
    /// `nil` for the system bus.
    var busAddress: String?
    var adapter: String?
    /// The identifier under which the state is kept; `nil` if it is not kept.
    var restoreIdentifier: String?
    /// `nil` for the usual folder.
    var stateFolder: String?
    /// An option of the central role.
    var maximumPeripherals = 16_384
    /// An option of the central role.
    var keepsLinks = false
    var problem: Failure?

    /// - Parameter readOthers: Reads the options of one role.
    private init(
        _ options: [String: Any]?, busAddress: String, adapter: String, restoreIdentifier: String, stateFolder: String,
        readOthers: (inout Self, OptionReader) throws -> Void = { _, _ in }
    ) {
        let options = OptionReader(options)
        do {
            self.busAddress = try options.string(busAddress)
            self.adapter = try options.string(adapter)
            try readOthers(&self, options)
            self.restoreIdentifier = try options.string(restoreIdentifier, takes: "a String that is not empty") {
                !$0.isEmpty
            }
            self.stateFolder = try options.string(stateFolder, takes: "a String with an absolute path") {
                $0.hasPrefix("/")
            }
        } catch {
            problem = .invalidOption("\(error)")
        }
    }
}

extension ManagerOptions<CentralManagerError> {
    init(_ options: [String: Any]?) {
        self.init(
            options, busAddress: CentralManagerOptionBusAddressKey, adapter: CentralManagerOptionAdapterKey,
            restoreIdentifier: CBCentralManagerOptionRestoreIdentifierKey,
            stateFolder: CentralManagerOptionStateDirectoryKey
        ) { result, options in
            let key = CentralManagerOptionMaximumPeripheralsKey
            if let count = try options.integer(key, in: 1...1_000_000, unit: "peripherals") {
                result.maximumPeripherals = count
            }
            result.keepsLinks = try options.bool(CentralManagerOptionKeepsLinksKey) == true
        }
    }
}

extension ManagerOptions<PeripheralManagerError> {
    init(_ options: [String: Any]?) {
        self.init(
            options, busAddress: PeripheralManagerOptionBusAddressKey, adapter: PeripheralManagerOptionAdapterKey,
            restoreIdentifier: CBPeripheralManagerOptionRestoreIdentifierKey,
            stateFolder: PeripheralManagerOptionStateDirectoryKey)
    }
}

/// Reads an `options` dictionary: returns `nil` for a missing key, and throws an error for a wrong value that says what
/// the key takes.
struct OptionReader {
    private let options: [String: Any]

    init(_ options: [String: Any]?) { self.options = options ?? [:] }

    /// Returns a text that `isTaken` accepts; `form` describes such texts.
    func string(
        _ key: String, takes form: String = "a String", _ isTaken: (String) -> Bool = { _ in true }
    ) throws -> String? {
        try value(key, takes: form) { any in (any as? String).flatMap { isTaken($0) ? $0 : nil } }
    }

    func bool(_ key: String) throws -> Bool? {
        try value(key, takes: "a Bool") { ($0 as? Bool) ?? ($0 as? NSNumber)?.boolValue }
    }

    func integer(_ key: String, in range: ClosedRange<Int>, unit: String) throws -> Int? {
        try value(key, takes: "an Int from \(range.lowerBound) to \(range.upperBound) \(unit)") { any in
            guard let number = (any as? Int) ?? (any as? NSNumber)?.intValue, range.contains(number) else { return nil }
            return number
        }
    }

    /// Returns a finite number of seconds, zero or more.
    func seconds(_ key: String) throws -> TimeInterval? {
        try value(key, takes: "a number of seconds, zero or more") { any in
            guard let number = (any as? Double) ?? (any as? Int).map(Double.init) ?? (any as? NSNumber)?.doubleValue,
                number.isFinite, number >= 0
            else { return nil }
            return number
        }
    }

    private func value<T>(_ key: String, takes form: String, _ read: (Any) -> T?) throws -> T? {
        guard let any = options[key] else { return nil }
        guard let value = read(any) else {
            throw CentralManagerError.invalidOption("The option \(key) takes \(form), not \(any).")
        }
        return value
    }
}
