"""Writes a random language model of a few hundred kilobytes. Its replies are letters without meaning."""

import sys

import gguf
import numpy as np

WIDTH, HEADS, HIDDEN, CONTEXT = 64, 4, 128, 4096
LETTERS = "abcdefghijklmnopqrstuvwxyz"

random = np.random.default_rng(1)
writer = gguf.GGUFWriter(sys.argv[1], "llama")

# A token for each byte, so that every text and every JSON grammar can be written.
tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + list(LETTERS)
types = [2, 3, 3] + [6] * 256 + [1] * len(LETTERS)
writer.add_tokenizer_model("llama")
writer.add_token_list(tokens)
writer.add_token_scores([0.0] * len(tokens))
writer.add_token_types(types)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)

writer.add_context_length(CONTEXT)
writer.add_embedding_length(WIDTH)
writer.add_block_count(1)
writer.add_feed_forward_length(HIDDEN)
writer.add_head_count(HEADS)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_vocab_size(len(tokens))


def weights(*shape: int) -> np.ndarray:
    return random.normal(0, 0.1, shape).astype(np.float32)


# Without a grammar, the letters are more probable than all other tokens.
output = weights(len(tokens), WIDTH)
output[-len(LETTERS) :] *= 20
writer.add_tensor("token_embd.weight", weights(len(tokens), WIDTH))
writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
writer.add_tensor("output.weight", output)
for name in ("attn_norm", "ffn_norm"):
    writer.add_tensor(f"blk.0.{name}.weight", np.ones(WIDTH, np.float32))
for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
    writer.add_tensor(f"blk.0.{name}.weight", weights(WIDTH, WIDTH))
writer.add_tensor("blk.0.ffn_gate.weight", weights(HIDDEN, WIDTH))
writer.add_tensor("blk.0.ffn_up.weight", weights(HIDDEN, WIDTH))
writer.add_tensor("blk.0.ffn_down.weight", weights(WIDTH, HIDDEN))

writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
