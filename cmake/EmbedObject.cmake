# cmake -DOBJECT=... -DOUTPUT=... -P EmbedObject.cmake: writes the object's bytes as the C++ source of
# src/nic/object.hpp.
file(READ ${OBJECT} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE ${OUTPUT} "// Generated from ${OBJECT}.
#include \"nic/loader/object.hpp\"
namespace unisono::nic {
alignas(16) static constexpr unsigned char kBytes[] = {${bytes}};
std::span<const std::byte> program_object() { return std::as_bytes(std::span(kBytes)); }
}  // namespace unisono::nic
")
