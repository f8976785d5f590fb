#!/usr/bin/env python3
"""The rewriter, without CUDA: what is emulated becomes calls, what is not is refused by name, the thread that issues
tensor operations is widened only where that is safe, and each lint sees its fault and passes its control."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/emulation/rewriter"))
from ptx import Refused  # noqa: E402
from rewrite import rewrite  # noqa: E402

HEAD = """.version 9.0
.target sm_100a
.address_size 64

.visible .entry kernel()
{
\t.reg .b32 %r<9>;
\t.reg .b64 %rd<5>;
\t.reg .b16 %rs<2>;
\t.reg .f32 %f<3>;
\t.reg .pred %p<3>;

"""
LIBRARY = """.version 9.0
.target sm_90a
.address_size 64
.visible .global .align 8 .b8 emulated_settings[64];
.global .b8 $str[2] = {97, 0};
.visible .func emulated_begin()
{ ret; }
"""
MULTIPLY = ("{ .reg .pred p; setp.ne.b32 p, %r4, 0; tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [%r1], %rd1, "
            "%rd2, %r4, [%r1], [%r2], p; }")
COPY = "tcgen05.cp.cta_group::2.32x128b.warpx4 [%r1], %rd1;"
COMMIT = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
LOAD = "tcgen05.ld.sync.aligned.16x256b.x1.b32 {%r1, %r2, %r3, %r4}, [%r5];"
WAIT_LOAD = "tcgen05.wait::ld.sync.aligned;"
FENCE_AFTER = "tcgen05.fence::after_thread_sync;"
FENCE_BEFORE = "tcgen05.fence::before_thread_sync;"
TRY_WAIT = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], %r2;"
ARRIVE = "mbarrier.arrive.shared.b64 _, [%r6];"
BOX = "cp.async.bulk.tensor.2d{}.shared::cluster.global.mbarrier::complete_tx::bytes{} [%r1], [%rd1, {{%r2, %r3}}], [%r4]{};"


def elected(body, behind=""):
    """`body` for one elected thread, as nvcc writes it."""
    return ("{ .reg .pred q; .reg .b32 l; mov.b32 %r3, 0;\nelect.sync l|q, 0xffffffff;\n@q mov.b32 %r3, 1; }\n"
            "setp.eq.s32 %p1, %r3, 0;\n@%p1 bra $E;\n" + body + "\n$E:\n" + behind)


def rewritten(body):
    return rewrite(HEAD + body + "\n\tret;\n}\n", LIBRARY)


class Emulated(unittest.TestCase):
    def expect_call(self, body, function):
        text, _ = rewritten(body)
        self.assertIn(function, text)
        self.assertIn(".target sm_90a", text)
        self.assertNotIn("tcgen05.", text)
        return text

    def test_multiply(self):
        self.expect_call(elected(MULTIPLY), "emulated_multiply")

    def test_copy_of_scales(self):
        self.expect_call(elected(COPY), "emulated_copy_scales")

    def test_commits(self):
        self.expect_call(elected(COMMIT + ".multicast::cluster.b64 [%r1], %rs1;"), "emulated_commit")
        self.expect_call(elected(COMMIT + ".b64 [%r1];"), "emulated_commit")

    def test_loads(self):
        text = self.expect_call(LOAD + WAIT_LOAD, "emulated_load_16x256b")
        self.assertRegex(text, r"%r2, \[%place\w+\+4\]")  # the next column
        self.assertRegex(text, r"%r3, \[%place\w+\+16384\]")  # eight lanes of 512 words
        eight = LOAD.replace("x1.", "x2.").replace("%r4}", "%r4, %r5, %r6, %r7, %r8}").replace("[%r5]", "[%r0]")
        self.assertRegex(self.expect_call(eight + WAIT_LOAD, "emulated_load_16x256b"), r"%r5, \[%place\w+\+32\]")
        wide = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];"
        self.expect_call(wide + WAIT_LOAD, "emulated_load_32x32b")

    def test_allocation(self):
        self.expect_call("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 512;", "emulated_allocate")
        self.expect_call("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 512;", "emulated_deallocate")

    def test_boxes(self):
        self.expect_call(BOX.format("", "", ""), "emulated_copy_box")
        self.expect_call(BOX.format(".cta_group::2", ".L2::cache_hint", ", %rd2"), "emulated_copy_box")
        three = BOX.format("", "", "").replace("2d", "3d").replace("%r3}", "%r3, %r5}")
        self.expect_call(three, "emulated_copy_box")

    def test_stores_by_tensor_map_stay(self):
        store = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], [%r4];"
        self.assertIn(store, rewritten(store)[0])

    def test_small_instructions(self):
        self.expect_call("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%rd1], {%r1};", "emulated_store_bytes")
        self.expect_call("st.bulk.weak.shared::cta [%rd1], 64, 0;", "emulated_clear")
        self.expect_call("mul.rn.f32x2 %rd1, %rd2, %rd3;", "mul.rn.f32 ")
        self.expect_call("add.rn.f32.bf16 %f1, %rs1, %f2;", "cvt.f32.bf16")

    def test_waits_are_bounded(self):
        self.expect_call("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+8], %r2;", "emulated_tick")

    def test_predicates(self):
        text = self.expect_call("@%p2 st.bulk.weak.shared::cta [%rd1], 64, 0;", "emulated_clear")
        self.assertIn("@!%p2 bra", text)

    def test_registers_are_not_handed_out(self):
        self.assertNotIn("setmaxnreg", rewritten("setmaxnreg.inc.sync.aligned.u32 208;")[0])

    def test_the_library_comes_first(self):
        text, _ = rewritten("")
        self.assertLess(text.index("emulated_settings"), text.index(".entry kernel"))
        self.assertLess(text.index(".entry kernel"), text.index("call emulated_begin"))
        self.assertIn("$emulated_str", text)
        self.assertEqual(text.count(".version"), 1)


class NotEmulated(unittest.TestCase):
    def expect_refusal(self, body, words="is not emulated"):
        with self.assertRaises(Refused) as caught:
            rewritten(body)
        self.assertIn(words, str(caught.exception))

    def test_forms(self):
        for body in [
                elected(MULTIPLY.replace("block_scale", "block_scale.scale_vec::2X")),
                elected(MULTIPLY.replace("cta_group::2", "cta_group::1")),
                elected("tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r4, %p1;"),
                elected("tcgen05.cp.cta_group::2.128x256b [%r1], %rd1;"),
                "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r1}, [%r2];" + WAIT_LOAD,
                "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2};",
                "tcgen05.shift.cta_group::2.down [%r1];",
                "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512;",
                BOX.format(".cta_group::2", ".multicast::cluster", ", %rs1"),
                "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], "
                "[%rd1, {%r2, %r3, %r3, %r3, %r3}], [%r4];",
                "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];",
                "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%rd1], {%r1, %r2};",
                "redux.sync.max.f32 %f1, %f2, -1;",
        ]:
            with self.subTest(body):
                self.expect_refusal(body)

    def test_a_in_tensor_memory(self):
        self.expect_refusal(elected(MULTIPLY.replace("%rd1,", "[%r5],")), "A in tensor memory")

    def test_too_few_registers(self):
        self.expect_refusal(LOAD.replace(", %r4}", "}") + WAIT_LOAD, "3 registers in place of 4")

    def test_other_kernels(self):
        with self.assertRaises(Refused):
            rewrite(HEAD.replace("sm_100a", "sm_90a") + "}\n", LIBRARY)

    def test_labels_in_assembly(self):
        self.expect_refusal("$again:\n$again:", "twice")


class Elected(unittest.TestCase):
    def test_the_warp_comes_through(self):
        text, counts = rewritten(elected(COPY + MULTIPLY))
        self.assertEqual(counts["elect.sync, made wide"], 1)
        self.assertIn("setp.eq.u32 q, 0, 0;", text)

    def test_other_ways_to_write_the_branch(self):
        choose = "{ .reg .pred q; .reg .b32 l; elect.sync l|q, 0xffffffff; selp.u32 %r3, 1, 0, q; }\n"
        for branch in [
                "setp.eq.s32 %p1, %r3, 0;\n@%p1 bra $E;\n",
                "setp.ne.s32 %p1, %r3, 0;\n@!%p1 bra $E;\n",
                "setp.ne.s32 %p1, %r3, 0;\n@%p1 bra $IN;\nbra $E;\n$IN:\n",
                "setp.eq.s32 %p1, %r3, 0;\n@!%p1 bra $IN;\nbra.uni $E;\n$IN:\n",
        ]:
            with self.subTest(branch):
                _, counts = rewritten(choose + branch + MULTIPLY + "\n$E:\n")
                self.assertEqual(counts["elect.sync, made wide"], 1)
                self.expect_refusal(choose + branch + MULTIPLY + "\nst.global.b32 [%rd3], %r1;\n$E:\n",
                                    "st.global.b32 in a region")
                rewritten(choose + branch + MULTIPLY + "\n$E:\nst.global.b32 [%rd3], %r1;\n")

    def test_other_elections_stay(self):
        _, counts = rewritten(elected("mbarrier.arrive.shared::cta.b64 _, [%r1];"))
        self.assertNotIn("elect.sync, made wide", counts)

    def test_branches_out_of_line(self):
        body = elected("@%p2 bra $OUT;\n" + MULTIPLY) + "ret;\n$OUT:\n" + MULTIPLY + "\nbra $E;"
        _, counts = rewritten(body)
        self.assertEqual(sum(count for name, count in counts.items() if "mma" in name), 2)

    def expect_refusal(self, body, words):
        with self.assertRaises(Refused) as caught:
            rewritten(body)
        self.assertIn(words, str(caught.exception))

    def test_a_store_beside_tensor_operations(self):
        self.expect_refusal(elected(MULTIPLY + "\nst.global.b32 [%rd3], %r1;"), "st.global.b32 in a region")

    def test_an_arrival_out_of_line(self):
        body = elected("@%p2 bra $OUT;\n" + MULTIPLY) + "ret;\n$OUT:\n" + ARRIVE + "\nbra $E;"
        self.expect_refusal(body, "mbarrier.arrive")

    def test_no_election(self):
        self.expect_refusal(MULTIPLY, "not in a region that elect.sync guards")
        self.expect_refusal(elected(MULTIPLY) + COMMIT + ".b64 [%r1];", "not in a region")


class Lints(unittest.TestCase):
    def expect_finding(self, body, words):
        with self.assertRaises(Refused) as caught:
            rewritten(body)
        self.assertIn(words, str(caught.exception))

    def test_use_before_the_wait(self):
        use = "add.u32 %r7, %r2, 1;"
        rewritten(LOAD + WAIT_LOAD + use)
        self.expect_finding(LOAD + use + WAIT_LOAD, "add.u32 touches %r2")
        self.expect_finding(LOAD + "@%p1 bra $skip;" + WAIT_LOAD + "$skip:\n" + use + WAIT_LOAD, "add.u32 touches %r2")

    def test_arrival_before_the_wait(self):
        rewritten(LOAD + WAIT_LOAD + FENCE_BEFORE + ARRIVE)
        self.expect_finding(LOAD + FENCE_BEFORE + ARRIVE + WAIT_LOAD, "overwritten while they are read")

    def test_no_wait(self):
        self.expect_finding(LOAD, "ends without a tcgen05.wait::ld")

    def test_fence_after_a_barrier(self):
        for operation in (LOAD + WAIT_LOAD, elected(MULTIPLY), elected(COPY)):
            loop = "$again:\n" + TRY_WAIT + "\n@!%p2 bra $again;\n"
            rewritten(loop + FENCE_AFTER + "\n" + operation)
            self.expect_finding(FENCE_AFTER + loop + operation, "can follow an mbarrier wait")

    def test_fence_before_an_arrival(self):
        self.expect_finding(LOAD + WAIT_LOAD + ARRIVE, "fence::before_thread_sync")
        self.expect_finding(LOAD + WAIT_LOAD + "@%p1 bra $skip;" + FENCE_BEFORE + "$skip:\n" + ARRIVE,
                            "fence::before_thread_sync")


if __name__ == "__main__":
    unittest.main()
