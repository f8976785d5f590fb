#!/usr/bin/env python3
"""cmake/check_ptxas.sh against reports as ptxas writes them: good ones pass with one line a kernel, each fault fails.

usage: check_ptxas_test.py <cmake/check_ptxas.sh>"""

import subprocess
import sys
import unittest

SCRIPT = sys.argv.pop()


def report(registers=96, spilled=0, shared="", notes=""):
    return f"""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kernel' for 'sm_100a'
ptxas info    : Function properties for kernel
    16 bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads
ptxas info    : Used {registers} registers, used 9 barriers{shared}
{notes}ptxas info    : Compile time = 53.911 ms
"""


class Check(unittest.TestCase):
    def run_on(self, text, status=0):
        command = ["sh", SCRIPT, "168", "1024", "sh", "-c", f"cat >&2; exit {status}"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def expect_refusal(self, text, words):
        code, output = self.run_on(text)
        self.assertEqual(code, 1)
        self.assertIn(words, output)

    def test_good(self):
        code, output = self.run_on(report(registers=168, shared=", 1024 bytes smem"))
        self.assertEqual(code, 0)
        self.assertEqual(output,
                         "kernel: 168 registers, 16 bytes of stack, 1024 of static shared memory\n")

    def test_spills(self):
        self.expect_refusal(report(spilled=4), "8 bytes of spilled registers; the bound is 0")

    def test_registers(self):
        self.expect_refusal(report(registers=176), "176 registers of a thread; the bound is 168")

    def test_shared_memory(self):
        self.expect_refusal(report(shared=", 1040 bytes smem"), "1040 bytes of static shared memory; the bound is 1024")

    def test_serialized_wgmma(self):
        note = "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized\n"
        self.expect_refusal(report(notes=note), "serializes wgmma")

    def test_second_kernel(self):
        self.expect_refusal(report() + report(registers=200).replace("kernel", "second"), "second: 200 registers")

    def test_the_compilers_errors_stay(self):
        code, output = self.run_on("kernel.cu(4): error: no\n", status=2)
        self.assertEqual(code, 2)
        self.assertIn("kernel.cu(4): error: no", output)


if __name__ == "__main__":
    unittest.main()
