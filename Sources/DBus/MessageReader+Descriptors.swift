import CDBus
import Glibc
import Reactor

extension MessageReader {
    /// A descriptor, duplicated for the caller; nil also where the process has no descriptor left for it.
    package mutating func descriptor() -> OwnedDescriptor? { try? duplicatedDescriptor() ?? nil }

    /// A descriptor, duplicated for the caller; nil where the next argument is none.
    ///
    /// - Throws: `…Error.LimitsExceeded` where this process has no descriptor left for the duplicate, and
    ///   `…Error.InvalidArgs` where the message does not carry the descriptor that its argument names.
    package mutating func duplicatedDescriptor() throws(DBusError) -> OwnedDescriptor? {
        guard isAt("h") else { return nil }
        align(4)
        errno = 0
        // The bytes hold a number in a list that libdbus keeps to itself, and gives out by its iterators alone.
        let descriptor = cdbus_message_descriptor(message.pointer, descriptorsBefore(position))
        guard descriptor >= 0 else {
            if errno == EMFILE || errno == ENFILE { throw DBusError(.descriptors(errno)) }
            throw .invalidArguments("The message does not carry the file descriptor that its argument names.")
        }
        step()
        return OwnedDescriptor(owning: descriptor)
    }

    /// How many descriptors stand before a place in the message.
    private func descriptorsBefore(_ place: Int) -> Int {
        var reader = message.reader
        var count = 0
        reader.countDescriptors(before: place, into: &count)
        return count
    }

    private mutating func countDescriptors(before place: Int, into count: inout Int) {
        while !isAtEnd, position < place {
            switch type {
            case .descriptor:
                align(4)
                if position < place { count += 1 }
                step()
            case .structure:
                structure { $0.countDescriptors(before: place, into: &count) }
            case .variant:
                variant { $0.countDescriptors(before: place, into: &count) }
            case .array where elementType == .dictionaryEntry:
                dictionary { $0.countDescriptors(before: place, into: &count) }
            case .array:
                array { $0.countDescriptors(before: place, into: &count) }
            default:
                step()
            }
        }
    }
}
