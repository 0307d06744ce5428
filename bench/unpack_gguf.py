"""The model of a GGUF file as a folder that transformers and vLLM serve: python unpack_gguf.py FILE.gguf FOLDER.

It runs in an environment that has transformers, gguf and PyTorch.
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(file: Path, folder: Path) -> None:
    """Write the weights without quantization, and the tokenizer with its chat template."""
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    config = read.config
    del config.quantization_config  # what was read is not quantized any more; with it nothing is saved
    plain = type(read)(config)
    plain.load_state_dict(read.state_dict())
    plain.to(torch.bfloat16).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
