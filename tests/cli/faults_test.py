#!/usr/bin/env python3
"""A rank process that dies mid-call, and a user who has had enough: a sentence, exit code 4, no process, no output
and no shared memory left behind."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from cli_case import CLI, SECONDS, CliCase
from synthetic_layer import Layer, Tokens

RANKS = 4
CPU_SECONDS_BEFORE_THE_FAULT = 0.3  # of a rank: packing takes less, the whole call far more


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def cpu_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
    except FileNotFoundError:  # it has ended
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def standing(pid):
    """Of a process and its threads: state, what it waits for in the kernel, and the CPU time taken."""
    threads = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            path = f"/proc/{pid}/task/{thread}"
            with open(f"{path}/stat", encoding="ascii") as stat, open(f"{path}/wchan", encoding="ascii") as wchan:
                threads.append(f"{stat.read().rpartition(')')[2].split()[0]} {wchan.read()}")
    except OSError:
        threads.append("ended")
    return f"{pid}: {cpu_seconds(pid)} s, {', '.join(threads)}"


class Faults(CliCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = set(os.listdir("/dev/shm"))
        cls.layer = tempfile.mkdtemp(prefix="megamoe_cli_")
        cls.addClassCleanup(shutil.rmtree, cls.layer, ignore_errors=True)
        shape = ("--shape", "1024,1024,8,8", "--tokens", "16384", "--ranks", str(RANKS))
        command = [CLI, "generate", *shape, "--weights", "w", "--input", "x"]
        subprocess.run(command, cwd=cls.layer, stdout=subprocess.DEVNULL, timeout=SECONDS, check=True)

    def setUp(self):
        super().setUp()
        for name in ("w", "x"):
            os.link(os.path.join(self.layer, name), self.path(name))
        with open(self.path("y"), "wb") as file:
            file.write(b"precious")

    def wait_for(self, what, ready):
        deadline = time.monotonic() + SECONDS
        while not ready():
            self.assertLess(time.monotonic(), deadline, f"waited for {what}")
            time.sleep(0.005)

    def start(self, *flags):
        command = [CLI, "forward", "--weights", "w", "--input", "x", "--output", "y", *flags]
        running = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.stderr.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def start_ranks(self, *flags):
        """A call in processes that is under way, and its ranks' process ids, in the order of their making."""
        running = self.start("--launch", "processes", *flags)
        self.wait_for("the ranks", lambda: len(children_of(running.pid)) == RANKS or running.poll() is not None)
        ranks = children_of(running.pid)
        self.assertEqual(len(ranks), RANKS, "the call was over before it could be disturbed")
        self.wait_for(
            "the call",
            lambda: running.poll() is not None or min(map(cpu_seconds, ranks)) >= CPU_SECONDS_BEFORE_THE_FAULT,
        )
        self.assertIsNone(running.poll(), "the call was over before it could be disturbed")
        return running, ranks

    def sentence_of(self, running, ranks):
        """What the call said at its end. One that hangs fails with where its processes stood."""
        try:
            return running.communicate(timeout=SECONDS)[1]
        except subprocess.TimeoutExpired:
            stood = [standing(pid) for pid in (running.pid, *ranks)]
            running.kill()
            self.fail("the call hangs; it and its ranks:\n" + "\n".join(stood))

    def assert_nothing_left(self, ranks=()):
        self.wait_for("the ranks' end", lambda: not any(map(is_alive, ranks)))
        self.assertEqual(self.remaining(), ["w", "x", "y"])
        self.assertEqual(self.content("y"), b"precious")
        left = {name for name in set(os.listdir("/dev/shm")) - self.shared if "megamoe" in name}
        self.assertEqual(left, set())

    def test_a_killed_rank(self):
        for victim in (0, 2):
            with self.subTest(victim=victim):
                running, ranks = self.start_ranks()
                os.kill(ranks[victim], signal.SIGKILL)
                sentence = self.sentence_of(running, ranks)
                self.assertEqual(running.returncode, 4, sentence)
                self.assertIn(f"rank {victim} (process {ranks[victim]}) was killed by signal 9", sentence)
                self.assert_nothing_left(ranks)

    def test_a_stopped_rank_is_waited_for_no_longer_than_asked(self):
        running, ranks = self.start_ranks("--timeout-ms", "300")
        os.kill(ranks[1], signal.SIGSTOP)
        sentence = self.sentence_of(running, ranks)
        self.assertEqual(running.returncode, 4, sentence)
        self.assertIn("gave up", sentence)
        self.assertIn("rank 1", sentence)
        self.assert_nothing_left(ranks)

    def test_interrupt_ends_the_ranks(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                running, ranks = self.start_ranks()
                running.send_signal(number)
                self.sentence_of(running, ranks)
                self.assertEqual(running.returncode, -number)
                self.assert_nothing_left(ranks)

    def test_the_ranks_die_with_their_parent(self):
        running, ranks = self.start_ranks()
        running.kill()
        running.communicate(timeout=SECONDS)
        self.assert_nothing_left(ranks)

    def test_interrupt_of_threads(self):
        running = self.start("--ranks", str(RANKS))
        self.wait_for("the call", lambda: running.poll() is not None or cpu_seconds(running.pid) >= 1)
        self.assertIsNone(running.poll(), "the call was over before it could be disturbed")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=SECONDS)
        self.assertEqual(running.returncode, -signal.SIGINT)
        self.assert_nothing_left()


class SmallFaults(CliCase):
    def setUp(self):
        super().setUp()
        layer = Layer(64, 32, 4)
        self.write("w", layer.tensors())
        self.write("x", Tokens(layer, 8, 2).tensors())

    def test_memory_that_is_not_there(self):
        """Terabytes of combine slots, on any computer of these years."""
        self.succeed("generate", "--shape", "8192,32,64,32", "--tokens", 64, "--ranks", 64, "--weights", "w", "--input", "x")
        command = ("forward", "--weights", "w", "--input", "x", "--output", "y", "--capacity", 65536)
        self.refuse(4, ["the symmetric memory of 64 ranks needs", "bytes", "available"], *command)
        self.assertEqual(self.remaining(), ["w", "x"])

    def test_a_file_size_limit_is_a_sentence_not_a_signal(self):
        for launch in ("threads", "processes"):
            done = subprocess.run(
                ["/bin/sh", "-c", 'ulimit -f 1 && exec "$0" "$@"', CLI]
                + ["forward", "--weights", "w", "--input", "x", "--output", "y", "--launch", launch, "--ranks", "2"],
                cwd=self.folder, capture_output=True, text=True, timeout=SECONDS, check=False,
            )
            self.assertIn(done.returncode, (2, 4), done.stderr)
            self.assertRegex(done.stderr, r"\Amegamoe: [^\n]*bytes[^\n]*\n\Z")
            self.assertEqual(self.remaining(), ["w", "x"])

    def test_standard_output_that_is_full(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(
                [CLI, "plan", "--shape", "64,32,4,2"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False
            )
        self.assertEqual(done.returncode, 4)
        self.assertIn("standard output can't be written", done.stderr)


if __name__ == "__main__":
    unittest.main()
