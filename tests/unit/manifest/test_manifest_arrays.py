# SPDX-License-Identifier: Apache-2.0
"""Arrays that are read without numpy are those that numpy reads."""

import io
import zipfile

import numpy as np
import pytest
from opwest.manifest.arrays import Array, ArrayError, _numpy, _plain, array_names, read_array

PLAIN = [
    np.arange(24, dtype=dtype).reshape(shape)
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32")
    for shape in ((24,), (2, 3, 4), (24, 1))
] + [np.array(2.5), np.zeros((0, 3), "bool"), np.array([True, False])]
OTHERS = [np.asfortranarray(np.ones((2, 3))), np.arange(3, dtype=">i4"), np.ones(2, "complex64"), np.ones(2, "V3")]


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_plain_files_equal_numpys_reading(tmp_path):
    np.savez(tmp_path / "a.npz", *PLAIN)
    np.savez_compressed(tmp_path / "c.npz", *PLAIN)
    assert array_names(tmp_path / "a.npz") == tuple(f"arr_{number}" for number in range(len(PLAIN)))
    for number, array in enumerate(PLAIN):
        (tmp_path / "x.npy").write_bytes(saved(array))
        expected = Array(array.tobytes(), array.dtype.name, array.shape)
        assert _plain(saved(array)) == _numpy(tmp_path / "x.npy", None) == expected
        for archive in ("a.npz", "c.npz"):
            assert read_array(tmp_path / archive, f"arr_{number}", key_given=True) == expected


@pytest.mark.parametrize("array", OTHERS, ids=lambda array: str(array.dtype))
def test_numpy_reads_other_arrays(tmp_path, array):
    assert _plain(saved(array)) is None
    (tmp_path / "x.npy").write_bytes(saved(array))
    assert read_array(tmp_path / "x.npy", "", key_given=False).shape == array.shape


def test_damaged_files_are_left_to_numpy(tmp_path):
    whole = saved(np.arange(12, dtype="int8"))
    assert _plain(saved(np.zeros((0, 3), "int8")).replace(b"(0, 3)", b"(0, 9223372036854775808)")) is None
    for content in (whole[:-1], whole + b"\0", whole.replace(b"(12,)", b"(09,)"), whole.replace(b"\1\0v", b"\2\0v")):
        assert _plain(content) is None
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(ArrayError):
            read_array(tmp_path / "x.npy", "", key_given=False)
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr("x.npy", content)
        with pytest.raises(ArrayError):
            read_array(tmp_path / "x.npz", "x", key_given=True)
