import Glibc

/// Whether two C strings are the same; no string equals none.
func equal(_ left: UnsafePointer<CChar>?, _ right: UnsafePointer<CChar>) -> Bool {
    guard let left else { return false }
    return strcmp(left, right) == 0
}

/// A C string's bytes, without the zero at its end.
func bytes(of text: UnsafePointer<CChar>) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(
        start: UnsafeRawPointer(text).assumingMemoryBound(to: UInt8.self), count: strlen(text))
}

/// A C string of its own, for comparing without making Swift strings.
///
/// Unchecked: the bytes are written once, here, and read only.
final class CString: @unchecked Sendable {
    let pointer: UnsafePointer<CChar>

    init(_ text: String) {
        let bytes = text.utf8CString
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
        for (index, byte) in bytes.enumerated() { copy[index] = byte }
        pointer = UnsafePointer(copy)
    }

    deinit {
        pointer.deallocate()
    }
}
