"""Text that others wrote, however it is packed and encoded, and no more of it than was allowed."""

import bz2
import gzip
import io
import lzma

import pyarrow
import pytest

from alphagateau.games.pgn.text_files import Bounds, TextFileError, bounds_of, read_lines

TEXT = "Réti\nÜber\n"
SMALL = Bounds(file=1000, line=100, game=100)


def zstd(content: bytes) -> bytes:
    return pyarrow.compress(content, codec="zstd", asbytes=True)


@pytest.fixture
def lines(tmp_path):
    def read(content: bytes, bounds: Bounds = SMALL) -> list[str]:
        (tmp_path / "file").write_bytes(content)
        return list(read_lines(tmp_path / "file", bounds))

    return read


def two_frames(content: bytes) -> bytes:
    return zstd(content[:4]) + zstd(content[4:])


def behind_a_skipped_frame(content: bytes) -> bytes:
    """As pzstd begins each of its frames."""
    return b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstd(content)


PACKERS = [bytes, gzip.compress, bz2.compress, lzma.compress, zstd, two_frames, behind_a_skipped_frame]


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_text_is_read_however_it_is_packed_and_encoded(lines, pack, encoding):
    text = "[White]\n" + TEXT
    assert "".join(lines(pack(text.encode(encoding)))) == text


def test_padding_and_line_ends_are_no_text(lines):
    assert lines(b"a\r\nb\rc\n\x1a" + bytes(50)) == ["a\n", "b\n", "c\n", ""]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"ab\n" * 1000, "more than 0 MB of text, unpacked$"),
        (b"ab" * 500, "line 1 has more than 100 letters"),
    ],
)
def test_what_unpacks_to_too_much_is_refused(lines, pack, content, said):
    with pytest.raises(TextFileError, match=said):
        lines(pack(content))
    with pytest.raises(TextFileError, match=rf"{said.rstrip('$')}.*: --option$"):
        lines(pack(content), SMALL._replace(hint=": --option"))
    assert "".join(lines(pack(content), bounds_of(1))) == content.decode()


def test_a_bomb_is_never_unpacked_whole(monkeypatch, tmp_path):
    """Bytes that were asked of the unpacker, of a file that unpacks to a hundred times as much."""
    asked = []

    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer) -> int:
            asked.append(len(buffer))
            size = len(buffer) // 3 * 3
            buffer[:size] = b"ab\n" * (size // 3)
            return size

    monkeypatch.setattr("alphagateau.games.pgn.text_files._unpacked", lambda name, file: Endless())
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TextFileError, match="more than 0 MB"):
        list(read_lines(tmp_path / "file", Bounds(100_000, 100, 100)))
    assert min(asked) > 0 and sum(asked) < 300_000


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_cut_file_cannot_be_read(lines, pack):
    with pytest.raises(TextFileError, match="cannot be read"):
        lines(pack(TEXT.encode())[:-3])
