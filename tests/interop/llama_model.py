"""A tiny model for llama.cpp: random weights, and a tokenizer of single bytes, so that a prompt has one token for each of its bytes."""
from pathlib import Path

import gguf
import numpy as np

CONTEXT, LAYERS, WIDTH, HEADS, INNER = 65536, 2, 64, 4, 128
SPECIAL = ("<unk>", "<s>", "</s>")
TOKENS = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
TYPES = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]


def shapes() -> dict[str, tuple[int, ...]]:
    """Of the tensors, as llama.cpp's LLM_ARCH_LLAMA names them."""
    layer = {"attn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH), "attn_output": (WIDTH, WIDTH),
             "ffn_norm": (WIDTH,), "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
    return {"token_embd.weight": (len(TOKENS), WIDTH), "output_norm.weight": (WIDTH,), "output.weight": (len(TOKENS), WIDTH),
            **{f"blk.{number}.{name}.weight": shape for number in range(LAYERS) for name, shape in layer.items()}}


def write(path: Path) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types(TYPES)
    writer.add_bos_token_id(SPECIAL.index("<s>"))
    writer.add_eos_token_id(SPECIAL.index("</s>"))
    writer.add_unk_token_id(SPECIAL.index("<unk>"))
    writer.add_add_space_prefix(False)
    random = np.random.default_rng(0)
    for name, shape in shapes().items():
        writer.add_tensor(name, random.normal(0, 0.1, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
