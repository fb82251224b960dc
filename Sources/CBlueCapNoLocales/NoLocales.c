// Foundation contains ICU's data of all languages and time zones: 34 MB, half of the tool when Swift's libraries are linked
// statically. The tool writes English, and asks the C library for the time zone. So it defines ICU's symbol itself, as a
// file of data without entries, and the linker leaves the object with the data out. ICU then reports that it has no data;
// Foundation uses "en_001" and GMT instead.
//
// Where Foundation is a shared library it has its own data, and this symbol is not visible to it.

#include <stdint.h>

/// The header of ICU's common data (`MappedData` and `UDataInfo` in its sources), and a table of contents without entries.
struct common_data {
    uint16_t headerSize;
    uint8_t magic[2];
    uint16_t infoSize;
    uint16_t reserved;
    uint8_t isBigEndian;
    uint8_t charsetFamily;
    uint8_t sizeOfUChar;
    uint8_t reservedByte;
    uint8_t dataFormat[4];
    uint8_t formatVersion[4];
    uint8_t dataVersion[4];
    uint8_t padding[8];
    uint32_t entries[4];
};

#define NO_DATA(version)                                                                                              \
    __attribute__((visibility("hidden"), aligned(16))) const struct common_data icudt##version##_dat = {              \
        .headerSize = 32,                                                                                             \
        .magic = {0xda, 0x27},                                                                                        \
        .infoSize = 20,                                                                                               \
        .isBigEndian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,                                                        \
        .sizeOfUChar = 2,                                                                                             \
        .dataFormat = {'T', 'o', 'C', 'P'},                                                                           \
        .formatVersion = {1},                                                                                         \
    }

// The symbol has the version of ICU in it: 74 in Swift 6.2, 76 in Swift 6.3.
NO_DATA(74);
NO_DATA(76);
