#!/usr/bin/env python3
"""The checks themselves: each plants one fault in a small tree and expects exactly that finding. A check that
finds nothing in a good tree proves nothing alone."""

import os
import tempfile
import unittest

import include_direction
import structure

GOOD = {
    "include/megamoe/error.hpp": "#pragma once\n#include <string>\n",
    "include/megamoe/layer.hpp": '#pragma once\n#include "megamoe/error.hpp"\n',
    "src/base/CMakeLists.txt": "FILES math.hpp portable.hpp error.hpp",
    "src/base/math.hpp": "#pragma once\n#include <cstdint>\n",
    "src/base/portable.hpp": "#pragma once\n#if defined(X)\n#define MEGAMOE_DEVICE\n#endif\n",
    "src/numerics/CMakeLists.txt": "FILES float8.hpp",
    "src/numerics/float8.hpp": '#pragma once\n#include "base/math.hpp"\n',
    "src/protocol/CMakeLists.txt": "FILES ring.hpp",
    "src/protocol/ring.hpp": '#pragma once\n// asm, virtual and <thread> are words here\n#include "numerics/float8.hpp"\n',
    "src/machine/cpu/CMakeLists.txt": "FILES tile.cc",
    "src/machine/cpu/tile.cc": '#include <hwy/highway.h>\n#include "protocol/ring.hpp"\n',
    "src/api/CMakeLists.txt": "FILES layer.hpp",
    "tests/unit/ring_test.cc": '#include <gtest/gtest.h>\n#include "protocol/ring.hpp"\n',
}


class Planted(unittest.TestCase):
    def findings(self, check, path=None, text=None):
        with tempfile.TemporaryDirectory() as root:
            for name, content in {**GOOD, **({path: text} if path else {})}.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(content)
            return check(root)

    def expect(self, check, path, text, words):
        found = self.findings(check, path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])
        self.assertTrue(found[0].startswith(path), found)

    def test_the_good_tree_is_good(self):
        self.assertEqual(self.findings(include_direction.check), [])
        self.assertEqual(self.findings(structure.check), [])


class Direction(Planted):
    def expect_edge(self, path, line, words):
        self.expect(include_direction.check, path, "#pragma once\n" + line + "\n", words)

    def test_upward(self):
        self.expect_edge("src/numerics/float8.hpp", '#include "protocol/ring.hpp"', "numerics may not include protocol")

    def test_sideways(self):
        self.expect_edge("src/machine/sm90/a.cuh", '#include "machine/sm100/b.cuh"', "may not include machine/sm100")

    def test_spaces_do_not_hide_an_edge(self):
        self.expect_edge("src/base/math.hpp", '  #  include "protocol/ring.hpp"', "base may not include protocol")

    def test_public_header_includes_a_layer(self):
        self.expect_edge("include/megamoe/layer.hpp", '#include "protocol/ring.hpp"', "megamoe may not include")

    def test_vocabulary_includes_a_layer(self):
        self.expect_edge("include/megamoe/error.hpp", '#include "base/math.hpp"', "nothing but itself")

    def test_layer_includes_what_is_built_on_it(self):
        self.expect_edge("src/protocol/ring.hpp", '#include "megamoe/layer.hpp"', "protocol may not include megamoe")

    def test_relative(self):
        self.expect_edge("src/numerics/float8.hpp", '#include "../base/math.hpp"', "from the source root")

    def test_without_its_folder(self):
        self.expect_edge("src/numerics/float8.hpp", '#include "math.hpp"', "from the source root")

    def test_headers_that_protocol_may_not_see(self):
        for header in ("thread", "sys/mman.h", "immintrin.h", "atomic", "vector"):
            self.expect_edge("src/protocol/ring.hpp", f"#include <{header}>", "protocol may not include it")

    def test_libraries(self):
        self.expect_edge("src/protocol/ring.hpp", "#include <cuda/atomic>", "may not use this library")
        self.expect_edge("src/base/math.hpp", "#include <hwy/highway.h>", "may not use this library")

    def test_assembly(self):
        self.expect_edge("src/machine/cpu/tile.cc", 'void f() { asm volatile("nop"); }', "asm")
        barrier = 'void f(int& i) { asm volatile("" : "+r"(i)); }'
        self.assertEqual(self.findings(include_direction.check, "src/machine/cpu/tile.cc", barrier), [])
        self.assertEqual(self.findings(include_direction.check, "src/machine/cuda/ptx.cuh", 'asm("");'), [])

    def test_words(self):
        self.expect_edge("src/protocol/ring.hpp", "struct A { virtual void f(); };", "not a base class")


class Structure(Planted):
    def expect_fault(self, path, text, words):
        self.expect(structure.check, path, text, words)

    def test_long_file(self):
        self.expect_fault("src/base/math.hpp", "#pragma once\n" + "int x;\n" * 500, "501 lines")

    def test_long_function(self):
        body = "  if (x) {\n    f();\n  }\n" * 20
        self.expect_fault("src/machine/cpu/tile.cc", f"int f(int a,\n      int b) {{\n{body}}}\n", "62 lines")
        method = "class A {\n public:\n  void f() const {\n" + "    g();\n" * 59 + "  }\n};\n"
        self.expect_fault("src/machine/cpu/tile.cc", method, "61 lines")

    def test_function_at_the_bound(self):
        text = "int f() {\n" + "  g();\n" * 58 + "}\n"
        self.assertEqual(self.findings(structure.check, "src/machine/cpu/tile.cc", text), [])

    def test_long_class_is_no_function(self):
        text = "class alignas(64) A {\n" + "  int f();\n" * 100 + "};\n"
        self.assertEqual(self.findings(structure.check, "src/machine/cpu/tile.cc", text), [])

    def test_seventh_macro(self):
        self.expect_fault("src/base/math.hpp", "#pragma once\n#define MEGAMOE_MORE 1\n", "six macros")

    def test_condition_in_the_middle(self):
        self.expect_fault("src/base/math.hpp", "#pragma once\nint a;\n#ifdef B\nint b;\n#endif\n", "heads of files")

    def test_condition_at_the_head(self):
        text = "#pragma once\n// why\n#if defined(X)\n#include <vector>\n#endif\nint a;\n"
        self.assertEqual(self.findings(structure.check, "src/base/math.hpp", text), [])

    def test_file_name(self):
        self.expect_fault("tests/unit/test_utils.hpp", "#pragma once\n", "named after")

    def test_reminder(self):
        self.expect_fault("src/base/math.hpp", "#pragma once\n// TODO: more\n", "TODO")

    def test_no_pragma_once(self):
        self.expect_fault("src/base/math.hpp", "int a;\n", "#pragma once")

    def test_unlisted_header(self):
        self.expect_fault("src/base/bits.hpp", "#pragma once\n", "no CMakeLists.txt lists it")


if __name__ == "__main__":
    unittest.main()
