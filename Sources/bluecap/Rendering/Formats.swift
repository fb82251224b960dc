import BlueCapCipher
import BlueCapKit
import BlueZSimulator
import Foundation

/// The formats that a command decodes, and the user's names of UUIDs, from a file that Documentation/CommandLine.md describes.
struct Formats: Decodable, Sendable {
    private enum Key: String, CodingKey, CaseIterable { case keys, names, decoders }

    /// Those of the command that the task belongs to.
    @TaskLocal static var current = Formats()

    private(set) var decoders = AdvertisementDecoders.all
    private(set) var names: [CBUUID: String] = [:]
    private var keys: [(address: BluetoothAddress, key: Data)] = []

    private init() {}

    /// - Throws: ``ToolFailure`` with what is wrong and where.
    init(path: String) throws {
        let data = FileManager.default.contents(atPath: path)
        guard let data else { throw ToolFailure("The file \(path) of decoders cannot be read.") }
        do {
            self = try DescriptionFile.decode(Formats.self, from: data)
        } catch {
            throw ToolFailure("\(path) is no file of decoders: \(error.description).")
        }
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        for (address, key) in try container.decodeIfPresent([String: String].self, forKey: .keys) ?? [:] {
            let problem = "\"\(address)\" is not the address of a key of 32 hexadecimal digits"
            guard let address = BluetoothAddress(address), let key = ValueForm.bytes(key), key.count == 16
            else { throw container.failure(.keys, problem) }
            keys.append((address, key))
        }
        for (text, name) in try container.decodeIfPresent([String: String].self, forKey: .names) ?? [:] {
            guard let uuid = CBUUID(validating: text) else { throw container.failure(.names, "\"\(text)\" is no UUID") }
            names[uuid] = name
        }
        decoders.decoders += try container.decodeIfPresent([FieldDecoder].self, forKey: .decoders) ?? []
    }

    /// The formats of the file in the user's folder for configurations, if it is there.
    static func usual() throws -> Formats {
        let folder = ProcessInfo.processInfo.environment["XDG_CONFIG_HOME"] ?? ""
        let path = (folder.hasPrefix("/") ? folder : NSHomeDirectory() + "/.config") + "/bluecap/decoders.json"
        return FileManager.default.fileExists(atPath: path) ? try Formats(path: path) : Formats()
    }

    /// Decrypts with these keys and those of the file; throws ``ToolFailure`` without a cipher.
    mutating func add(_ more: [(address: BluetoothAddress, key: Data)]) throws {
        let keys = Dictionary(keys + more) { $1 }
        guard !keys.isEmpty else { return }
        let decrypt: BTHomeDecoder.Decryption
        do { decrypt = try LibCrypto.ccm() } catch { throw ToolFailure(error.description) }
        decoders.replaceBTHome(with: BTHomeDecoder(keys: keys, decrypt: decrypt))
    }

    static func serviceName(_ uuid: CBUUID) -> String? { current.names[uuid] ?? AssignedNumbers.serviceName(uuid) }
}

/// A decoder that a file describes by the places of its numbers.
struct FieldDecoder: AdvertisementDecoder, Decodable {
    private enum Key: String, CodingKey, CaseIterable { case name, company, service, length, prefix, fields }

    private let name: String
    private let company: UInt16?
    private let service: CBUUID?
    private let length: Int
    private let prefix: Data
    private let fields: [Field]

    init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: Key.self)
        name = try container.decode(String.self, forKey: .name)
        company = try container.value(.company, "a company, such as 0x0499") {
            $0.hasPrefix("0x") ? UInt16($0.dropFirst(2), radix: 16) : UInt16($0)
        }
        service = try container.value(.service, "a UUID") { CBUUID(validating: $0) }
        guard (company == nil) != (service == nil) else {
            throw container.failure(.company, "a decoder has either a company or a service")
        }
        length = try container.number(0...65_535, forKey: .length) ?? 0
        prefix = try container.value(.prefix, "hexadecimal bytes", ValueForm.bytes) ?? Data()
        fields = try container.decode([Field].self, forKey: .fields)
    }

    func reading(in advertisement: AdvertisementFields) -> SensorReading? {
        let manufacturerData = company.flatMap { advertisement.manufacturerData[$0] }
        guard let data = manufacturerData ?? service.flatMap({ advertisement.serviceData[$0] }), data.count >= length,
            data.starts(with: prefix)
        else { return nil }
        let values = fields.compactMap { $0.value(in: data) }
        return values.isEmpty ? nil : SensorReading(format: name, values: values)
    }

    private struct Field: Decodable, Sendable {
        enum Key: String, CodingKey, CaseIterable { case name, offset, type, factor, unit }

        let name, unit: String
        let offset: Int
        let form: NumberForm
        let factor: Double

        init(from decoder: any Decoder) throws {
            let container = try decoder.strictContainer(keyedBy: Key.self)
            name = try container.decode(String.self, forKey: .name)
            unit = try container.decodeIfPresent(String.self, forKey: .unit) ?? ""
            offset = try container.number(0...65_535, forKey: .offset) ?? 0
            factor = try container.decodeIfPresent(Double.self, forKey: .factor) ?? 1
            let type = try container.value(.type, "a type, such as u8, i16le or u32be") {
                $0.wholeMatch(of: /([iu](?:8|16|24|32))(?:le|(be))?/).flatMap { NumberForm("\($0.1)\($0.2 ?? "")") }
            }
            guard let type else { throw container.failure(.type, "the field has no type") }
            form = type
        }

        /// `nil` if the data ends before.
        func value(in data: Data) -> SensorValue? {
            guard let number = form.numbers(in: data.dropFirst(offset).prefix(form.size))?.first.flatMap({ Double($0) })
            else { return nil }
            // The nearest decimal fraction: 3 × 0.1 is not 0.3.
            let rounded = (number * factor * 1e9).rounded() / 1e9
            return SensorValue(SensorQuantity(rawValue: name), .number(rounded), unit: unit)
        }
    }
}

extension KeyedDecodingContainer {
    /// Returns a value that is written as a text; `nil` if the key is not there.
    fileprivate func value<Value>(
        _ key: Key, _ requirement: String, _ read: (String) throws -> Value?
    ) throws -> Value? {
        guard let text = try decodeIfPresent(String.self, forKey: key) else { return nil }
        guard let value = try? read(text) else { throw failure(key, "\"\(text)\" is not \(requirement)") }
        return value
    }
}
