"""As much of the ELF format as it takes to see what a shared library does when it is loaded."""

import struct


def section_size(path, wanted):
    """The size in bytes of a section of a 64-bit little-endian ELF file; 0 where there is none."""
    content = path.read_bytes()
    assert content[:6] == b"\x7fELF\x02\x01", f"{path} is not a 64-bit little-endian ELF file"
    (table,) = struct.unpack_from("<Q", content, 40)
    entry, count, names = struct.unpack_from("<3H", content, 58)
    sections = [struct.unpack_from("<2I4Q", content, table + i * entry) for i in range(count)]
    text = sections[names][4]
    for name, _, _, _, _, size in sections:
        start = text + name
        if content[start : content.index(b"\0", start)] == wanted.encode():
            return size
    return 0
