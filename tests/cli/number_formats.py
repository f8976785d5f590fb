"""The layer's number formats on Python's floats, by their definitions."""

import math
import struct

NAN = float("nan")
GROUP = 32

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M1 += [-value for value in E2M1]


def _e4m3_value(code):
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return NAN
    if exponent == 0:
        return sign * mantissa * 2.0**-9
    return sign * (8 + mantissa) * 2.0 ** (exponent - 10)


E4M3 = [_e4m3_value(code) for code in range(256)]


def ue8m0(byte):
    return NAN if byte == 255 else 2.0 ** (byte - 127)


def _round_to(value, quantum):
    return round(value / quantum) * quantum  # round() is to even, and the quantum a power of two


def bf16(value):
    """The nearest bfloat16, as a float."""
    if value == 0 or not math.isfinite(value):
        return value
    exponent = max(math.frexp(value)[1], -125)
    rounded = _round_to(value, 2.0 ** (exponent - 8))
    return rounded if abs(rounded) < 2.0**128 else math.copysign(math.inf, value)


def bf16_bits(value):
    if math.isnan(value):
        return 0x7FC0
    return struct.unpack("<I", struct.pack("<f", bf16(value)))[0] >> 16


def bf16_value(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def e4m3(value):
    """The nearest E4M3 value, saturating."""
    if value == 0:
        return value
    exponent = max(math.frexp(value)[1], -5)
    return max(-448.0, min(448.0, _round_to(value, 2.0 ** (exponent - 4))))


def quantise(values):
    """Groups of 32 to E4M3 with a power of two each: the values that are left of them."""
    out = []
    for first in range(0, len(values), GROUP):
        group = values[first : first + GROUP]
        if not all(map(math.isfinite, group)):
            out += [NAN] * len(group)
            continue
        largest = max(map(abs, group))
        exponent = 0
        if largest > 0:
            exponent = max(-127, math.frexp(largest / 448.0)[1])
            if largest <= math.ldexp(448.0, exponent - 1):
                exponent = max(-127, exponent - 1)
        out += [math.ldexp(e4m3(math.ldexp(value, -exponent)), exponent) for value in group]
    return out
