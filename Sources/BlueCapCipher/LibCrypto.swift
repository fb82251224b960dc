public import BlueCapGATT
import Foundation

/// The cipher of OpenSSL's libcrypto, which is loaded only if a key is given: the programs run without that library too.
public enum LibCrypto {
    private typealias Object = OpaquePointer?
    private typealias Bytes = UnsafePointer<UInt8>?
    private typealias Create = @Sendable @convention(c) () -> Object
    private typealias Free = @Sendable @convention(c) (Object) -> Void
    private typealias Begin = @Sendable @convention(c) (Object, Object, Object, Bytes, Bytes) -> CInt
    private typealias Set = @Sendable @convention(c) (Object, CInt, CInt, Bytes) -> CInt
    private typealias Update =
        @Sendable @convention(c) (Object, Buffer, UnsafeMutablePointer<CInt>, Bytes, CInt) -> CInt
    private typealias Buffer = UnsafeMutablePointer<UInt8>

    /// The library cannot be loaded.
    public struct MissingError: Error, CustomStringConvertible {
        public var description: String { "A key needs libcrypto.so.3: install Debian's package libssl3." }
    }

    /// Returns AES-128 in CCM mode, as EVP_EncryptInit(3ssl) describes it.
    public static func ccm() throws(MissingError) -> BTHomeDecoder.Decryption {
        func function<Function>(_ name: String) throws(MissingError) -> Function {
            let address = dlopen("libcrypto.so.3", RTLD_NOW).flatMap { dlsym($0, name) }
            guard let address else { throw MissingError() }
            return unsafeBitCast(address, to: Function.self)
        }
        let (create, free): (Create, Free) = (try function("EVP_CIPHER_CTX_new"), try function("EVP_CIPHER_CTX_free"))
        let (cipher, set): (Create, Set) = (try function("EVP_aes_128_ccm"), try function("EVP_CIPHER_CTX_ctrl"))
        let (begin, update): (Begin, Update) = (try function("EVP_DecryptInit_ex"), try function("EVP_DecryptUpdate"))
        return { data, tag, nonce, key in
            let context = create()
            defer { free(context) }
            var (plain, count) = ([UInt8](repeating: 0, count: data.count), CInt(0))
            // EVP_CTRL_AEAD_SET_IVLEN and EVP_CTRL_AEAD_SET_TAG. The update of CCM fails if the tag is wrong.
            guard begin(context, cipher(), nil, nil, nil) == 1, set(context, 0x9, CInt(nonce.count), nil) == 1,
                set(context, 0x11, CInt(tag.count), [UInt8](tag)) == 1,
                begin(context, nil, nil, [UInt8](key), [UInt8](nonce)) == 1,
                update(context, &plain, &count, [UInt8](data), CInt(data.count)) == 1
            else { return nil }
            return Data(plain)
        }
    }
}

extension AdvertisementDecoders {
    /// Makes the decoder of BTHome one that has keys, at the first place.
    public mutating func replaceBTHome(with decoder: BTHomeDecoder) {
        decoders.removeAll { $0 is BTHomeDecoder }
        decoders.insert(decoder, at: 0)
    }
}
