#!/usr/bin/env python3
"""What each verb prints and writes when all is well, for a person and as JSON."""

import json
import os
import pty
import struct
import subprocess
import unittest

import safetensors
from cli_case import CLI, SECONDS, CliCase

SHAPE = ("--shape", "96,64,6,2")


class Verbs(CliCase):
    def generate(self, *flags):
        self.succeed("generate", *SHAPE, "--tokens", "20", "--ranks", "3", "--weights", "w", "--input", "x", *flags)

    def test_help_and_version(self):
        self.assertRegex(self.succeed("--version"), r"\A\d+\.\d+\.\d+\n\Z")
        top = self.succeed("--help")
        for verb in ("forward", "generate", "plan", "bench", "check", "doctor"):
            self.assertIn(verb, top)
            self.assertIn("--json", self.succeed(verb, "--help"))

    def test_generate(self):
        facts = json.loads(self.succeed("generate", *SHAPE, "--tokens", "7", "--ranks", "3", "--weights", "w", "--input", "x", "--json"))
        self.assertEqual(facts["experts"], 6)
        self.assertEqual(facts["weights"], {"path": "w", "bytes": len(self.content("w"))})
        weights, tokens = (safetensors.read(self.path(name)) for name in ("w", "x"))
        self.assertEqual(
            {name: tensor.shape for name, tensor in weights.items()},
            {"l1.weight": [6, 128, 48], "l1.scale": [6, 128, 3], "l2.weight": [6, 96, 32], "l2.scale": [6, 96, 2]},
        )
        self.assertEqual(tokens["x"].shape, [7, 96])
        self.assertEqual(struct.unpack("<3q", tokens["tokens_per_rank"].data), (3, 2, 2))
        ids = struct.unpack("<14q", tokens["topk_ids"].data)
        self.assertTrue(all(0 <= expert < 6 for expert in ids))

    def test_generate_depends_on_the_seed_alone(self):
        self.generate("--seed", "4")
        first = self.content("w"), self.content("x")
        self.generate("--seed", "4")
        self.assertEqual((self.content("w"), self.content("x")), first)
        self.generate("--seed", "5")
        self.assertNotEqual(self.content("w"), first[0])
        self.assertNotEqual(self.content("x"), first[1])

    def test_routings(self):
        seen = set()
        for routing in ("uniform", "zipf", "hot"):
            self.generate("--routing", routing)
            seen.add(safetensors.read(self.path("x"))["topk_ids"].data)
        self.assertEqual(len(seen), 3)

    def test_every_shape_name_cut_down(self):
        for name in ("flash", "pro", "v3", "gpt-oss-120b", "qwen3-235b", "qwen3-30b", "kimi-k2"):
            plan = self.succeed_json("plan", "--shape", name, "--experts", "8", "--ranks", "2")
            self.assertEqual(plan["problem"]["experts"], 8)

    def test_forward_prints_one_line(self):
        self.generate()
        for launch in ("threads", "processes"):
            line = self.succeed("forward", "--weights", "w", "--input", "x", "--output", "y", "--launch", launch)
            self.assertRegex(line, r"\A20 tokens through 6 experts on cpu/\S+, 3 ranks as " + launch + r", .*: y\n\Z")

    def test_forward_verified(self):
        self.generate()
        table = self.succeed("forward", "--weights", "w", "--input", "x", "--output", "y", "--verify")
        for word in ("ran on", "3 ranks as threads", "tokens/s", "pulled", "pushed", "agrees with the reference", "time"):
            self.assertIn(word, table)

    def test_forward_json(self):
        self.generate()
        facts = self.succeed_json("forward", "--weights", "w", "--input", "x", "--output", "y", "--verify")
        self.assertEqual(facts["problem"], {"hidden": 96, "intermediate": 64, "experts": 6, "topk": 2, "ranks": 3, "capacity": 7})
        self.assertEqual(facts["tokens"], 20)
        self.assertTrue(facts["verify"]["agrees"])
        self.assertGreater(facts["bytes_pulled"], 0)
        self.assertGreater(facts["weight_bytes"], 0)

    def test_an_output_keeps_its_permissions_and_its_link(self):
        self.generate()
        with open(self.path("real"), "wb"):
            pass
        os.chmod(self.path("real"), 0o640)
        os.symlink("real", self.path("y"))
        self.forward()
        self.assertTrue(os.path.islink(self.path("y")))
        self.assertEqual(os.stat(self.path("real")).st_mode & 0o777, 0o640)
        self.assertIn("y", safetensors.read(self.path("real")))

    def test_check_says_where_a_result_is_wrong(self):
        self.generate()
        self.forward()
        check = ("check", "--weights", "w", "--input", "x", "--output")
        self.assertIn("agrees", self.succeed(*check, "y"))
        tensors = safetensors.read(self.path("y"))
        cells = bytearray(tensors["y"].data)
        struct.pack_into("<H", cells, 2 * (5 * 96 + 17), 0x4500)  # 2048 at token 5, column 17
        tensors["y"].data = bytes(cells)
        self.write("z", tensors)
        done = self.call(*check, "z")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("differs", done.stdout)
        self.assertIn("token 5, column 17", done.stdout)
        done = self.call(*check, "z", "--json")
        self.assertEqual(done.returncode, 1)
        judged = json.loads(done.stdout)
        self.assertFalse(judged["agrees"])
        self.assertEqual((judged["worst_cell"]["token"], judged["worst_cell"]["column"]), (5, 17))

    def test_plan_of_machines_that_are_not_here(self):
        for machine, sms, workers in (("sm90", 78, 78), ("sm100", 148, 148), ("sm90", None, 132)):
            flags = ("--num-sms", sms) if sms else ()
            text = self.succeed("plan", "--shape", "flash", "--machine", machine, "--tokens", "8", *flags)
            self.assertIn(f"plan for {machine}, {workers} workers", text)
            plan = self.succeed_json("plan", "--shape", "flash", "--machine", machine, "--tokens", "8", *flags)
            self.assertEqual(plan["machine"], machine)
        emulated = ("plan", "--shape", "flash", "--machine", "sm100-emulated", "--tokens", "8")
        self.assertIn("plan for sm100, 132 workers", self.succeed(*emulated))  # an H200's
        self.assertIn("plan for sm100, 64 workers", self.succeed(*emulated, "--num-sms", "65"))

    def test_plan_of_files(self):
        self.generate()
        plan = self.succeed_json("plan", "--weights", "w", "--input", "x")
        self.assertEqual((plan["problem"]["ranks"], plan["problem"]["capacity"]), (3, 7))
        self.assertIn("pool", self.succeed("plan", "--weights", "w", "--input", "x"))

    def test_bench(self):
        flags = ("--tokens", "1,4", "--calls", "3", "--workers", "1")
        self.assertIn("GB/s", self.succeed("bench", *SHAPE, *flags))
        for launch in ("threads", "processes"):
            facts = self.succeed_json("bench", *SHAPE, *flags, "--ranks", "2", "--launch", launch)
            self.assertEqual([record["tokens"] for record in facts["records"]], [1, 4])
            self.assertTrue(all(record["median_us"] > 0 for record in facts["records"]))
        self.generate()
        self.succeed("bench", "--weights", "w", "--input", "x", *flags)

    def test_doctor(self):
        text = self.succeed("doctor")
        for word in ("cores", "instruction sets", "memory", "huge pages", "memfd", "file size limit", "open files limit",
                     "ranks as processes", "ranks as threads", "machine cpu", "machine sm90", "machine sm100", "machine sm100-emulated",
                     "version", "cuda"):
            self.assertIn(word, text)
        facts = self.succeed_json("doctor")
        self.assertTrue(facts["can_run"])
        by_name = {finding["name"]: finding for finding in facts["findings"]}
        self.assertEqual(by_name["machine cpu"]["verdict"], "ok")
        self.assertTrue(all(finding["text"] for finding in facts["findings"]))

    def test_doctor_where_little_is_allowed(self):
        command = ["/bin/sh", "-c", 'ulimit -f 1 && exec "$0" doctor --json', CLI]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        facts = json.loads(done.stdout)
        by_name = {finding["name"]: finding for finding in facts["findings"]}
        self.assertEqual(by_name["file size limit"]["verdict"], "slower")
        for name in ("shared memory", "ranks as processes"):
            self.assertEqual(by_name[name]["verdict"], "no")
            self.assertIn("bytes; the limit on a file's size (ulimit -f) is", by_name[name]["text"])
        self.assertEqual(facts["can_run"], by_name["ranks as threads"]["verdict"] == "ok")
        self.assertEqual(done.returncode, 0 if facts["can_run"] else 3, done.stderr)

    def test_progress_is_for_terminals(self):
        """On a terminal long work may show a line; what remains there in the end is what a pipe gets: nothing."""
        main, side = pty.openpty()
        command = [CLI, "generate", "--shape", "2048,2048,16,4", "--tokens", "4", "--weights", "w"]
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=side, timeout=SECONDS, check=False)
        os.close(side)
        shown = b""
        try:
            while chunk := os.read(main, 4096):
                shown += chunk
        except OSError:  # the terminal's end, on Linux
            pass
        os.close(main)
        self.assertEqual(done.returncode, 0)
        if shown:  # a quick computer has nothing to show
            self.assertRegex(shown, rb"\d+ of \d+ MB of w, [0-9.]+/s, [0-9.]+ s left")
            self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-40:])


if __name__ == "__main__":
    unittest.main()
