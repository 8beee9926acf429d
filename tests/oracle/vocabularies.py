"""Tiny but whole vocabularies, so that every engine loads the models: 307 tokens each.

307 is odd and prime: heads with it leave a tail in every tile shape.
"""

import gguf

SIZE = 307
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
PIECES = "th he in er an re on at en nd ti es or te of ed is it al ar st le".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def spm(writer, specials, bos, eos, unk):
    """SentencePiece: specials, 256 byte pieces, ▁, letters, pairs of letters."""
    tokens = [(s, UNKNOWN if i == unk else CONTROL, 0.0) for i, s in enumerate(specials)]
    tokens += [(f"<0x{b:02X}>", BYTE, 0.0) for b in range(256)]
    tokens += [(c, NORMAL, -1000.0 - i) for i, c in enumerate("\u2581" + LETTERS)]
    room = SIZE - len(tokens)
    assert room <= len(PIECES)
    tokens += [(p, NORMAL, -1.0 - i) for i, p in enumerate(PIECES[:room])]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([t[0] for t in tokens])
    writer.add_token_types([t[1] for t in tokens])
    writer.add_token_scores([t[2] for t in tokens])
    writer.add_bos_token_id(bos)
    writer.add_eos_token_id(eos)
    writer.add_unk_token_id(unk)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)


def byte_letters():
    """GPT-2's letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in plain}
    extra = 256
    for b in range(256):
        if b not in letters:
            letters[b] = chr(extra)
            extra += 1
    return [letters[b] for b in range(256)]


def bpe(writer, specials):
    """GPT-2 byte pairs: 256 bytes, merges of letters, control tokens at the end."""
    tokens = byte_letters()
    merges = []
    space = "\u0120"
    for pair in PIECES + [space + c for c in LETTERS]:
        if len(tokens) + len(specials) == SIZE:
            break
        tokens.append(pair)
        merges.append(f"{pair[0]} {pair[1]}")
    types = [NORMAL] * len(tokens) + [CONTROL] * len(specials)
    tokens += specials
    assert len(tokens) == SIZE
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(SIZE - 1)
    writer.add_bos_token_id(SIZE - len(specials))
    writer.add_add_bos_token(False)


def add(writer: gguf.GGUFWriter, arch):
    if arch == "qwen2":
        bpe(writer, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    elif arch == "gemma3":
        spm(
            writer,
            ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"],
            2,
            1,
            3,
        )
    else:
        spm(writer, ["<unk>", "<s>", "</s>"], 1, 2, 0)
