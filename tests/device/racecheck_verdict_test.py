#!/usr/bin/env python3
"""The judge of racecheck's reports, on a log and a machine code that are written here."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import racecheck_verdict

_KERNEL = "void megamoe::sm90::mega_moe<megamoe::sm90::Choice<(megamoe::sm90::Operands)1, (int)64>>(KernelArgs)"
_MANGLED = "_ZN7megamoe4sm908mega_moeINS0_6ChoiceILNS0_8OperandsE1ELi64EEEEEvNS0_10KernelArgsE"
_CODE = f"""
.text.{_MANGLED}:
        /*0010*/                   ST.E.64.STRONG.SM desc[UR12][R36.64+0x40], R22 ;
        /*0020*/                   LD.E.64.STRONG.SM R8, desc[UR12][R2.64+0x40] ;
        /*0030*/                   LDS R8, [R2+0x40] ;
        /*0040*/                   ATOMS.ADD R1, [R2], R3 ;
.text._ZN7megamoe4test11spin_kernelE:
        /*0030*/                   ST.E.64.STRONG.SM desc[UR12][R36.64+0x40], R22 ;
"""


def report(first, *others, kernel=_KERNEL):
    lines = [f"========= Error: Race reported between Write access at {kernel}+0x{first:x}"]
    lines += [f"=========     and Read access at {kernel}+0x{other:x} [{8 * (i + 1)} hazards]"
              for i, other in enumerate(others)]
    return [line + "\n" for line in lines]


class Verdict(unittest.TestCase):
    def judge(self, log, has_tools=True):
        """The exit code, and what was printed."""

        def run(command, cwd=None, **_):
            if "cuobjdump" in command[0]:
                for name, content in {"kernel.cubin": _MANGLED, "other.cubin": "spin"}.items():
                    with open(os.path.join(cwd, name), "w", encoding="utf-8") as file:
                        file.write(content)
                return None
            self.assertTrue(command[-1].endswith("kernel.cubin"), "only what was reported is disassembled")
            return mock.Mock(stdout=_CODE)

        out = io.StringIO()
        with mock.patch.object(racecheck_verdict.subprocess, "run", run), \
             mock.patch.object(racecheck_verdict, "tool", lambda name: name if has_tools else None), \
             contextlib.redirect_stdout(out), tempfile.TemporaryDirectory() as folder:
            return racecheck_verdict.judge(log, os.path.join(folder, "tests")), out.getvalue()

    def test_nothing_reported(self):
        self.assertEqual(self.judge(["========= RACECHECK SUMMARY: 0 hazards\n"])[0], 0)

    def test_strong_pairs_are_dismissed_and_counted(self):
        code, text = self.judge(report(0x10, 0x20, 0x40))
        self.assertEqual(code, 0)
        self.assertIn("2 pairs (24 hazards)", text)

    def test_one_weak_side_is_a_finding(self):
        code, text = self.judge(report(0x10, 0x20, 0x30))
        self.assertEqual(code, 9)
        self.assertIn("LDS R8", text)
        self.assertIn("1 pairs (8 hazards)", text)

    def test_what_cannot_be_looked_up_is_a_finding(self):
        self.assertEqual(self.judge(report(0x10, 0x50))[0], 9)
        self.assertEqual(self.judge(report(0x10, 0x20, kernel="void another(int)"))[0], 9)

    def test_without_tools_nothing_is_claimed(self):
        code, text = self.judge(report(0x10, 0x20), has_tools=False)
        self.assertEqual(code, 77)
        self.assertIn("skipped", text)


if __name__ == "__main__":
    unittest.main()
