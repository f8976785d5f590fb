#!/usr/bin/env python3
"""A checkpoint's layer gives the bytes that the same numbers in a layer file give. (Every layout is tested closer
to its reader; this is the way from the command line.)"""

import json
import os
import unittest

import safetensors
from cli_case import CliCase
from number_formats import GROUP
from synthetic_layer import Layer, Tokens

OAI = ("--activation", "swiglu-oai")


def interleaved(rows):
    """gpt-oss has gate and up rows in turn; ours are all gates, then all ups."""
    half = len(rows) // 2
    return [rows[row // 2 + (row % 2) * half] for row in range(len(rows))]


def gpt_oss_tensors(layer, prefix):
    def blocks(codes, rows, columns):
        packed = layer._packed(codes)
        return safetensors.Tensor("U8", [layer.experts, rows, columns // GROUP, GROUP // 2], packed)

    def scales(of_experts, rows, columns):
        data = b"".join(bytes(row) for expert in of_experts for row in expert)
        return safetensors.Tensor("U8", [layer.experts, rows, columns // GROUP], data)

    h, i = layer.hidden, layer.intermediate
    biases = Layer.tensors(layer, "BF16")
    turned = Layer(h, i, layer.experts, biases=True)
    turned.bias1, turned.bias2 = [interleaved(row) for row in layer.bias1], layer.bias2
    biases = turned.tensors("BF16")
    return {
        prefix + "gate_up_proj_blocks": blocks([interleaved(rows) for rows in layer.linear1], 2 * i, h),
        prefix + "gate_up_proj_scales": scales([interleaved(rows) for rows in layer.scale1], 2 * i, h),
        prefix + "gate_up_proj_bias": biases["l1.bias"],
        prefix + "down_proj_blocks": blocks(layer.linear2, h, i),
        prefix + "down_proj_scales": scales(layer.scale2, h, i),
        prefix + "down_proj_bias": biases["l2.bias"],
    }


class Checkpoints(CliCase):
    def setUp(self):
        super().setUp()
        self.layers = [Layer(64, 96, 4, seed=seed, biases=True) for seed in (1, 2)]
        tokens = Tokens(self.layers[0], 9, 2)
        self.write("x", tokens.tensors())
        os.mkdir(self.path("model"))
        config = {
            "model_type": "gpt_oss",
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "hidden_size": 64,
            "intermediate_size": 96,
            "swiglu_limit": 7.0,
        }
        with open(self.path("model/config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        shards = {}
        for number, layer in enumerate(self.layers):
            name = f"model-0000{number + 1}-of-00002.safetensors"
            tensors = gpt_oss_tensors(layer, f"model.layers.{number}.mlp.experts.")
            self.write("model/" + name, tensors)
            shards.update({tensor: name for tensor in tensors})
        self.index = "model/model.safetensors.index.json"
        with open(self.path(self.index), "w", encoding="utf-8") as file:
            json.dump({"weight_map": shards}, file)

    def test_folder_index_and_shard(self):
        for number, layer in enumerate(self.layers):
            self.write("w", layer.tensors("BF16"))
            wanted = self.forward(*OAI)
            shard = f"model/model-0000{number + 1}-of-00002.safetensors"
            for weights in ("model", self.index, shard):
                with self.subTest(layer=number, weights=weights):
                    got = self.forward("--layer", number, "--ranks", 2, weights=weights, output="z")
                    self.assertEqual(got, wanted)

    def test_output_never_replaces_a_file_of_the_checkpoint(self):
        shard, other = ("model/model-00001-of-00002.safetensors", "model/model-00002-of-00002.safetensors")
        before = {name: self.content(name) for name in (shard, other, self.index, "model/config.json")}
        for weights in ("model", self.index, other):
            for output in (shard, self.index, "model/config.json", "./model/../" + shard):
                if weights == output:
                    continue
                with self.subTest(weights=weights, output=output):
                    command = ("forward", "--weights", weights, "--layer", "1", "--input", "x", "--output", output)
                    self.refuse(2, ["a file of the checkpoint that --weights names", "written over"], *command)
        self.assertEqual({name: self.content(name) for name in before}, before)

    def test_output_beside_the_checkpoint_may_be_replaced(self):
        self.write("w", self.layers[1].tensors("BF16"))
        wanted = self.forward(*OAI)
        for _ in range(2):
            self.assertEqual(self.forward("--layer", 1, weights="model", output="model/y.safetensors"), wanted)

    def test_layers_that_are_not_there(self):
        command = ("forward", "--weights", "model", "--input", "x", "--output", "y")
        self.refuse(2, ["2", "0 to 1"], *command, "--layer", "2")
        self.refuse(2, "--layer", *command)

    def test_plan_of_a_checkpoint(self):
        plan = self.succeed_json("plan", "--weights", "model", "--layer", "1", "--input", "x")
        self.assertEqual(plan["problem"]["experts"], 4)


if __name__ == "__main__":
    unittest.main()
