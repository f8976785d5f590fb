"""A small layer with tokens: made from a seed, written as files, and computed in Python's floats."""

import math
import random
import struct

import safetensors
from number_formats import E2M1, E4M3, GROUP, bf16, bf16_bits, quantise, ue8m0


class Layer:
    """Weights as codes and scale bytes, one list per row: linear1[expert][row], linear2[expert][row]."""

    def __init__(self, hidden, intermediate, experts, seed=1, square_scales=False, biases=False):
        self.hidden, self.intermediate, self.experts = hidden, intermediate, experts
        self.square_scales = square_scales
        draw = random.Random(seed)
        self.linear1 = self._codes(draw, 2 * intermediate, hidden)
        self.linear2 = self._codes(draw, hidden, intermediate)
        self.scale1 = self._scales(draw, 2 * intermediate, hidden)
        self.scale2 = self._scales(draw, hidden, intermediate)
        self.bias1 = self.bias2 = None
        if biases:
            self.bias1 = self._biases(draw, 2 * intermediate)
            self.bias2 = self._biases(draw, hidden)

    def _codes(self, draw, rows, columns):
        return [[draw.choices(range(16), k=columns) for _ in range(rows)] for _ in range(self.experts)]

    def _scales(self, draw, rows, columns):
        """One list of bytes per row; with square scales 32 rows share one list."""
        centre = 127 - math.ceil(math.log2(8 * columns) / 2)
        groups = columns // GROUP
        step = GROUP if self.square_scales else 1
        scales = []
        for _ in range(self.experts):
            own = [[centre + draw.choice((-1, 0, 0, 1)) for _ in range(groups)] for _ in range(rows // step)]
            scales.append([own[row // step] for row in range(rows)])
        return scales

    def _biases(self, draw, rows):
        return [[bf16(draw.gauss(0, 0.5)) for _ in range(rows)] for _ in range(self.experts)]

    def _packed(self, codes):
        pairs = (zip(row[::2], row[1::2]) for expert in codes for row in expert)
        return b"".join(bytes(low | high << 4 for low, high in row) for row in pairs)

    def _scale_tensor(self, scales, rows, columns):
        step = GROUP if self.square_scales else 1
        data = b"".join(bytes(row) for expert in scales for row in expert[::step])
        return safetensors.Tensor("U8", [self.experts, rows // step, columns // GROUP], data)

    def tensors(self, bias_type="F32"):
        h, i, e = self.hidden, self.intermediate, self.experts
        tensors = {
            "l1.weight": safetensors.Tensor("U8", [e, 2 * i, h // 2], self._packed(self.linear1)),
            "l1.scale": self._scale_tensor(self.scale1, 2 * i, h),
            "l2.weight": safetensors.Tensor("U8", [e, h, i // 2], self._packed(self.linear2)),
            "l2.scale": self._scale_tensor(self.scale2, h, i),
        }
        for name, biases in (("l1.bias", self.bias1), ("l2.bias", self.bias2)):
            if biases is None:
                continue
            flat = [value for row in biases for value in row]
            shape = [e, len(biases[0])]
            if bias_type == "F32":
                tensors[name] = safetensors.floats(shape, flat)
            else:
                data = struct.pack(f"<{len(flat)}H", *map(bf16_bits, flat))
                tensors[name] = safetensors.Tensor("BF16", shape, data)
        return tensors


class Tokens:
    """Rows of bf16 values, ids and routing weights; masked slots have id -1."""

    def __init__(self, layer, count, topk, seed=2, ids=None):
        draw = random.Random(seed)
        self.hidden, self.count, self.topk = layer.hidden, count, topk
        self.rows = [[bf16(draw.gauss(0, 1)) for _ in range(layer.hidden)] for _ in range(count)]
        self.codes = self.scales = None  # instead of rows, when set
        some = min(topk, layer.experts)
        self.ids = ids or [
            draw.sample(range(layer.experts), some) + [draw.randrange(layer.experts) for _ in range(topk - some)]
            for _ in range(count)
        ]
        as_f32 = lambda value: struct.unpack("<f", struct.pack("<f", value))[0]
        self.weights = [[as_f32(draw.uniform(0.1, 1)) for _ in range(topk)] for _ in range(count)]

    def use_codes(self, seed=3, scale_bytes=(125, 126, 127, 128)):
        """Tokens as E4M3 codes and scale bytes."""
        draw = random.Random(seed)
        finite = [code for code in range(256) if code & 0x7F != 0x7F]
        self.codes = [draw.choices(finite, k=self.hidden) for _ in range(self.count)]
        self.scales = [draw.choices(scale_bytes, k=self.hidden // GROUP) for _ in range(self.count)]

    def tensors(self, tokens_per_rank=None, narrow_ids=False):
        if self.codes is None:
            bits = [bf16_bits(value) for row in self.rows for value in row]
            x = {"x": safetensors.Tensor("BF16", [self.count, self.hidden], struct.pack(f"<{len(bits)}H", *bits))}
        else:
            shape = [self.count, self.hidden]
            x = {
                "x": safetensors.Tensor("F8_E4M3", shape, b"".join(map(bytes, self.codes))),
                "x_scale": safetensors.Tensor(
                    "U8", [self.count, self.hidden // GROUP], b"".join(map(bytes, self.scales))
                ),
            }
        shape = [self.count, self.topk]
        ids = [each for row in self.ids for each in row]
        x["topk_ids"] = (safetensors.int32s if narrow_ids else safetensors.int64s)(shape, ids)
        x["topk_weights"] = safetensors.floats(shape, [each for row in self.weights for each in row])
        if tokens_per_rank is not None:
            x["tokens_per_rank"] = safetensors.int64s([len(tokens_per_rank)], tokens_per_rank)
        return x


def as_fp32_holds(value):
    return math.copysign(math.inf, value) if abs(value) >= 2.0**128 else value


def sigmoid(value):
    if value < -700:
        return 0.0
    return 1.0 / (1.0 + math.exp(-value))


class Activation:
    def __init__(self, clamp=None, oai=False, alpha=1.702, limit=7.0):
        self.bound = limit if oai else clamp
        self.oai, self.alpha = oai, alpha

    def __call__(self, gate, up):
        if self.bound is not None:
            gate = gate if math.isnan(gate) else min(gate, self.bound)
            up = up if math.isnan(up) else max(-self.bound, min(up, self.bound))
        if self.oai:
            return gate * sigmoid(self.alpha * gate) * (up + 1)
        return gate * sigmoid(gate) * up


class Computed:
    """y as values, the sum over slots of |slot| that bounds hang on, and tokens_per_expert."""

    def __init__(self, layer, tokens, activation=Activation()):
        self.layer, self.activation = layer, activation
        self._decoded = {}
        self.y, self.magnitude = [], []
        self.tokens_per_expert = [0] * layer.experts
        for token in range(tokens.count):
            x = self._token(tokens, token)
            sums, sizes = [0.0] * layer.hidden, [0.0] * layer.hidden
            for expert, weight in zip(tokens.ids[token], tokens.weights[token]):
                if expert < 0:
                    continue
                self.tokens_per_expert[expert] += 1
                slot = self._slot(x, expert, weight)
                sums = [a + b for a, b in zip(sums, slot)]
                sizes = [a + abs(b) for a, b in zip(sizes, slot)]
            self.y.append([bf16(value) for value in sums])
            self.magnitude.append(sizes)

    @staticmethod
    def _token(tokens, token):
        if tokens.codes is None:
            return quantise(tokens.rows[token])
        scales = [ue8m0(byte) for byte in tokens.scales[token] for _ in range(GROUP)]
        return [E4M3[code] * scale for code, scale in zip(tokens.codes[token], scales)]

    def _matrix(self, name, codes, scales, expert):
        key = (name, expert)
        if key not in self._decoded:
            self._decoded[key] = [
                [E2M1[code] * ue8m0(bytes_of_row[k // GROUP]) for k, code in enumerate(row)]
                for row, bytes_of_row in zip(codes[expert], scales[expert])
            ]
        return self._decoded[key]

    @staticmethod
    def _product(matrix, vector, biases):
        sums = [sum(a * b for a, b in zip(row, vector)) for row in matrix]
        return [bf16(a + b) for a, b in zip(sums, biases)] if biases else [bf16(a) for a in sums]

    def _slot(self, x, expert, weight):
        layer = self.layer
        matrix1 = self._matrix("linear1", layer.linear1, layer.scale1, expert)
        both = self._product(matrix1, x, layer.bias1 and layer.bias1[expert])
        gate, up = both[: layer.intermediate], both[layer.intermediate :]
        a = quantise([as_fp32_holds(self.activation(g, u) * weight) for g, u in zip(gate, up)])
        matrix2 = self._matrix("linear2", layer.linear2, layer.scale2, expert)
        bias2 = layer.bias2 and [bias * weight for bias in layer.bias2[expert]]
        return self._product(matrix2, a, bias2)
