#!/usr/bin/env python3
"""Everything that a command line can ask wrongly is one sentence that names flag or file, value and bound, with the
right exit code; and whatever fails leaves the output's place as it was."""

import os
import unittest

import safetensors
from cli_case import CliCase
from synthetic_layer import Layer, Tokens

BAD_INPUT, NO_SUCH_MACHINE = 2, 3


class Refusals(CliCase):
    def setUp(self):
        super().setUp()
        self.layer = Layer(64, 32, 4)
        self.tokens = Tokens(self.layer, 8, 2)
        self.write("w", self.layer.tensors())
        self.write("x", self.tokens.tensors())
        with open(self.path("y"), "wb") as file:
            file.write(b"precious")
        self.before = self.remaining()

    def tearDown(self):
        self.assertEqual(self.remaining(), self.before, "a refusal leaves no file behind")
        self.assertEqual(self.content("y"), b"precious", "a refusal leaves the output as it was")

    def refuse_forward(self, code, words, *flags, weights="w", tokens="x", output="y"):
        self.refuse(code, words, "forward", "--weights", weights, "--input", tokens, "--output", output, *flags)

    def test_flags_of_forward(self):
        cases = [
            ("--ranks 0", "--ranks is 0; it must be a whole number from 1 to 72"),
            ("--ranks -1", "--ranks is -1; it must be a whole number from 1 to 72"),
            ("--ranks 73", "--ranks is 73; it must be"),
            ("--ranks two", "--ranks is two; it must be"),
            ("--ranks 1.5", "--ranks is 1.5; it must be"),
            ("--ranks 99999999999999999999", "it must be a whole number from 1 to 72"),
            ("--ranks 3", "experts is 4; it must be a multiple of ranks, which is 3"),
            ("--workers 0", "--workers is 0; it must be a whole number from 1"),
            ("--workers -2", "--workers is -2; it must be"),
            ("--workers 100000", "workers is 100000; 1 to 1024 are possible"),
            ("--capacity 0", "--capacity is 0; it must be a whole number from 1 to 65536"),
            ("--capacity 65537", "--capacity is 65537; it must be"),
            ("--capacity 7", "rank 0 has 8 tokens; --capacity is 7"),
            ("--pool-rows 0", "--pool-rows is 0; it must be"),
            ("--pool-rows -384", "--pool-rows is -384; it must be"),
            ("--memory-budget 1000", "the budget is 1000 B"),
            ("--memory-budget -1", "--memory-budget is -1; it must be"),
            ("--timeout-ms -1", "--timeout-ms is -1; it must be a whole number from 0"),
            ("--timeout-ms soon", "--timeout-ms is soon; it must be"),
            ("--clamp nan", "--clamp is nan; it must be at least 0"),
            ("--clamp -0.5", "--clamp is -0.5; it must be at least 0"),
            ("--clamp much", "--clamp is much; it must be a number"),
            ("--clamp 1 --activation swiglu-oai", "--clamp is given; the activation swiglu-oai has none"),
            ("--alpha 1", "--alpha is given; the activation swiglu has none"),
            ("--limit 1", "--limit is given; the activation swiglu has none"),
            ("--activation swiglu-oai --alpha nan", "--alpha is nan; it must be finite"),
            ("--activation swiglu-oai --limit -1", "--limit is -1; it must be a finite number of at least 0"),
            ("--activation gelu", ["--activation", "gelu", "swiglu,swiglu-oai"]),
            ("--fast-math maybe", ["--fast-math", "maybe", "on,off"]),
            ("--launch fork", ["--launch", "fork", "threads,processes,environment"]),
            ("--numerics loose", ["--numerics", "loose", "fast,exact"]),
            ("--machine gpu", ["--machine", "gpu", "auto,cpu,sm90,sm100,sm100-emulated"]),
            ("--isa mmx", 'no instruction set named "mmx"'),
            ("--num-sms 4 --machine cpu", "--num-sms is given; the cpu machine takes --workers"),
            ("--num-sms 0", "--num-sms is 0; it must be"),
            ("--layer 3", "is a layer file and holds one layer; --layer 3 is for checkpoints"),
            ("--layer -1", "--layer is -1; it must be"),
            ("--frobnicate", "--frobnicate"),
            ("stray", "stray"),
        ]
        for flags, words in cases:
            with self.subTest(flags=flags):
                self.refuse_forward(BAD_INPUT, words, *flags.split())

    def test_machines_that_are_not_here(self):
        for machine in ("sm90", "sm100", "sm100-emulated"):
            # Whatever is built, the sentence says what is missing: the machine, or a card for it.
            self.refuse_forward(NO_SUCH_MACHINE, f"machine {machine} ", "--machine", machine)
            self.refuse_forward(NO_SUCH_MACHINE, f"machine {machine} ", "--machine", machine, "--launch", "processes")
        for machine in ("sm100", "sm100-emulated"):
            self.refuse_forward(NO_SUCH_MACHINE, f"--numerics is fast; the {machine} machine has exact only",
                                "--numerics", "fast", "--machine", machine)
        self.refuse_forward(NO_SUCH_MACHINE, "--numerics is fast", "--numerics", "fast", "--machine", "cpu")

    def test_an_instruction_set_of_another_processor(self):
        other = "neon" if os.uname().machine == "x86_64" else "avx2"
        self.refuse_forward(NO_SUCH_MACHINE, ["can't run the instruction set", other], "--isa", other)

    def test_verbs(self):
        self.refuse(BAD_INPUT, ["no verb", "fly", "forward", "generate", "plan", "bench", "check", "doctor"], "fly")
        self.refuse(BAD_INPUT, "--help")
        self.refuse(BAD_INPUT, "--weights is required", "forward")
        self.refuse(BAD_INPUT, "--input is required", "check", "--weights", "w", "--output", "y")

    def test_paths(self):
        self.refuse_forward(BAD_INPUT, "absent can't be opened", weights="absent")
        self.refuse_forward(BAD_INPUT, "absent can't be opened", tokens="absent")
        self.refuse_forward(BAD_INPUT, "is a folder", tokens=".")
        self.refuse_forward(BAD_INPUT, "is not a plain file", tokens="/dev/null")
        self.refuse_forward(BAD_INPUT, "not a layer file", weights="x")
        self.refuse_forward(BAD_INPUT, "no tensor", tokens="w")
        self.refuse_forward(BAD_INPUT, "'/absent/y' can't be written", output="/absent/y")
        self.refuse_forward(BAD_INPUT, "can't be written", output="/dev/null")
        self.refuse_forward(BAD_INPUT, "can't be written", output=".")
        self.refuse_forward(BAD_INPUT, "the same file as --weights", output="w")
        self.refuse_forward(BAD_INPUT, "the same file as --input", output="./x")

    def test_the_output_is_refused_before_the_inputs_are_read(self):
        self.refuse_forward(BAD_INPUT, "'/absent/y' can't be written", weights="absent", output="/absent/y")

    def test_shapes_that_do_not_meet(self):
        wide = self.write("wide", Tokens(Layer(96, 32, 4), 8, 2).tensors())
        self.before = self.remaining()
        self.refuse_forward(BAD_INPUT, ["w has hidden size 64", "wide has 96"], tokens=wide)

    def refuse_input(self, words, changed, code=BAD_INPUT):
        self.write("bad", {**self.tokens.tensors(), **changed})
        self.before = sorted({*self.before, "bad"})
        self.refuse_forward(code, ["bad", *words], tokens="bad")

    def test_ids_past_the_last_expert(self):
        ids = [each for row in self.tokens.ids for each in row]
        for bad in (4, 5, 2**62):
            self.refuse_input(
                ["topk_ids", "[5, 1]", str(bad), "below 4"],
                {"topk_ids": safetensors.int64s([8, 2], ids[:11] + [bad] + ids[12:])},
            )

    def test_tensors_of_the_input(self):
        zeros = lambda dtype, shape: safetensors.Tensor(
            dtype, shape, bytes(safetensors.WIDTH_OF_TYPE[dtype] * shape[0] * (shape[1] if len(shape) > 1 else 1))
        )
        self.refuse_input(["x", "F32"], {"x": zeros("F32", [8, 64])})
        self.refuse_input(["x", "multiple of 32"], {"x": zeros("BF16", [8, 48])})
        self.refuse_input(["x_scale"], {"x": zeros("F8_E4M3", [8, 64])})
        self.refuse_input(["x_scale"], {"x": zeros("F8_E4M3", [8, 64]), "x_scale": zeros("U8", [8, 1])})
        self.refuse_input(["topk_ids", "7"], {"topk_ids": zeros("I64", [7, 2])})
        self.refuse_input(["topk_ids", "U8"], {"topk_ids": zeros("U8", [8, 2])})
        self.refuse_input(["topk_ids", "32"], {"topk_ids": zeros("I64", [8, 33])})
        self.refuse_input(["topk_weights"], {"topk_weights": zeros("F32", [8, 3])})
        self.refuse_input(["topk_weights"], {"topk_weights": zeros("BF16", [8, 2])})

    def test_tokens_per_rank(self):
        split = lambda values: {"tokens_per_rank": safetensors.int64s([len(values)], values)}
        self.refuse_input(["tokens_per_rank", "sums to 7", "8"], split([3, 4]))
        self.refuse_input(["tokens_per_rank", "index 1", "9"], split([3, 9]))
        self.refuse_input(["tokens_per_rank", "index 0", "-1"], split([-1, 9]))
        self.refuse_input(["tokens_per_rank", "index 1"], split([2, 2**63 - 1]))
        self.refuse_input(["tokens_per_rank"], split([]))
        self.refuse_input(["tokens_per_rank"], split([0] * 80))

    def test_ranks_against_tokens_per_rank(self):
        self.write("split", self.tokens.tensors(tokens_per_rank=[4, 4]))
        self.before = self.remaining()
        self.refuse_forward(BAD_INPUT, ["tokens_per_rank", "split", "has 2 ranks", "4"], "--ranks", "4", tokens="split")

    def refuse_weights(self, words, changed):
        tensors = {**self.layer.tensors(), **changed}
        self.write("bad", {name: tensor for name, tensor in tensors.items() if tensor is not None})
        self.before = sorted({*self.before, "bad"})
        self.refuse_forward(BAD_INPUT, ["bad", *words], weights="bad")

    def test_tensors_of_the_layer(self):
        zeros = lambda *shape: safetensors.Tensor("U8", shape, bytes(shape[0] * shape[1] * shape[2]))
        self.refuse_weights(["l1.scale"], {"l1.scale": None})
        self.refuse_weights(["l2.weight"], {"l2.weight": None})
        self.refuse_weights(["l1.scale"], {"l1.scale": zeros(4, 64, 3)})
        self.refuse_weights(["l1.scale"], {"l1.scale": zeros(3, 64, 2)})
        self.refuse_weights(["l2.scale"], {"l2.scale": zeros(4, 63, 1)})
        self.refuse_weights(["l2.weight"], {"l2.weight": zeros(4, 64, 32)})
        self.refuse_weights(["l1.weight", "multiple of 32"], {"l1.weight": zeros(4, 64, 24)})
        self.refuse_weights(["l1.weight", "even"], {"l1.weight": zeros(4, 63, 32)})
        self.refuse_weights(["l2.bias"], {"l2.bias": safetensors.floats([4, 63], [0.0] * 252)})
        self.refuse_weights(["l1.biass", "unknown"], {"l1.biass": zeros(1, 1, 1)})
        self.refuse_weights(["l1.weight", "F32"], {"l1.weight": safetensors.floats([4, 64, 8], [0.0] * 2048)})

    def test_flags_of_generate(self):
        cases = [
            ("--shape none --tokens 1", ["--shape is none", "flash", "kimi-k2", "H,I,E,K"]),
            ("--shape 64,32,4 --tokens 1", "--shape is 64,32,4"),
            ("--shape 64,32,4,2,1 --tokens 1", "--shape is 64,32,4,2,1"),
            ("--shape 48,32,4,2 --tokens 1", "hidden is 48; it must be a multiple of 32"),
            ("--shape 64,0,4,2 --tokens 1", "intermediate is 0; it must be"),
            ("--shape 64,32,0,2 --tokens 1", "experts is 0; it must be 1 to 1024"),
            ("--shape 64,32,4,2 --experts 0 --tokens 1", "--experts is 0; it must be"),
            ("--shape 64,32,4,0 --tokens 1", "topk is 0; it must be"),
            ("--shape 64,32,4,5 --tokens 1", "topk is 5; it must be 1 to 4"),
            ("--shape 64,32,4,2 --tokens -1", "--tokens is -1; it must be"),
            ("--shape 64,32,4,2 --tokens 65537", "tokens is 65537; it must be 0 to 65536"),
            ("--shape 64,32,4,2 --tokens 1 --ranks 0", "--ranks is 0; it must be"),
            ("--shape 64,32,4,2 --tokens 1 --ranks 3", "experts is 4; it must be a multiple of ranks, 3"),
            ("--shape 64,32,4,2 --tokens 1 --seed -1", "--seed is -1; it must be"),
            ("--shape 64,32,4,2 --tokens 1 --routing star", "routing is 'star'; it must be one of uniform, zipf, hot"),
            ("--shape 64,32,4,2", "--tokens is required"),
        ]
        for flags, words in cases:
            with self.subTest(flags=flags):
                self.refuse(BAD_INPUT, words, "generate", "--weights", "g", *flags.split())
        self.refuse(BAD_INPUT, "nothing to write", "generate", "--shape", "64,32,4,2", "--tokens", "1")
        both = ("--weights", "g", "--input", "./g")
        self.refuse(BAD_INPUT, "the same file", "generate", "--shape", "64,32,4,2", "--tokens", "1", *both)

    def test_a_layer_larger_than_the_disk(self):
        huge = ("--shape", "524288,524288,1024,1", "--tokens", "1", "--weights", "g")
        self.refuse(BAD_INPUT, ["'g' needs", " bytes: the disk has ", " free"], "generate", *huge)

    def test_flags_of_plan_and_bench(self):
        shape = ("--shape", "64,32,4,2")
        self.refuse(BAD_INPUT, "plan takes either --shape, or --weights and --input", "plan")
        self.refuse(BAD_INPUT, "multiple of ranks", "plan", *shape, "--ranks", "3")
        self.refuse(BAD_INPUT, "--tokens is 65537", "plan", *shape, "--tokens", "65537")
        self.refuse(BAD_INPUT, "at most --capacity, 4", "plan", *shape, "--tokens", "5", "--capacity", "4")
        self.refuse(BAD_INPUT, "--num-sms is 0", "plan", *shape, "--machine", "sm90", "--num-sms", "0")
        self.refuse(BAD_INPUT, "--num-sms is given", "plan", *shape, "--num-sms", "4")
        self.refuse(BAD_INPUT, "num_sms is 1", "plan", *shape, "--machine", "sm100", "--num-sms", "1")
        self.refuse(BAD_INPUT, "bench takes either --shape", "bench")
        self.refuse(BAD_INPUT, "--tokens is 0", "bench", *shape, "--tokens", "1,0")
        self.refuse(BAD_INPUT, "bench starts its ranks itself", "bench", *shape, "--launch", "environment")
        self.refuse(BAD_INPUT, "--calls is 0", "bench", *shape, "--calls", "0")
        self.refuse(NO_SUCH_MACHINE, "machine sm90 ", "bench", *shape, "--machine", "sm90")
        self.refuse(NO_SUCH_MACHINE, "machine sm100 ", "bench", *shape, "--machine", "sm100")
        self.refuse(BAD_INPUT, "the emulation's times say nothing of Blackwell",
                    "bench", *shape, "--machine", "sm100-emulated")
        self.refuse(BAD_INPUT, ["hidden is 65536", "takes at most"], "plan", "--shape", "65536,32,4,2", "--machine", "sm90")

    def test_flags_of_a_gpu(self):
        self.refuse_forward(BAD_INPUT, "--workers is given; the sm90 machine takes --num-sms",
                            "--machine", "sm90", "--workers", "2")
        self.refuse_forward(BAD_INPUT, "--workers is given; the sm100-emulated machine takes --num-sms",
                            "--machine", "sm100-emulated", "--workers", "2")
        self.refuse(BAD_INPUT, "--numerics", "check", "--weights", "w", "--input", "x", "--output", "y", "--numerics", "loose")

    def test_check_of_a_file_that_does_not_fit(self):
        check = ("check", "--weights", "w", "--input", "x", "--output")
        self.refuse(BAD_INPUT, "y", *check, "y")
        wrong = {"y": safetensors.Tensor("BF16", [8, 32], bytes(512)), "tokens_per_expert": safetensors.int64s([4], [4] * 4)}
        self.write("short", wrong)
        self.before = self.remaining()
        self.refuse(BAD_INPUT, ["short", "'y'", "64"], *check, "short")


if __name__ == "__main__":
    unittest.main()
