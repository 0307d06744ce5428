"""The added tokens of the tokenizers of all families that a dialect claims: what they take for a token of its own
wherever it stands in a text, whether or not they call it special. By tokenizer, with its source.

Left out on purpose: runs of white space, elements of HTML and commands of LaTeX, with which some tokenizers only spell
text (`<code>`, `\\begin{`); switches that a user may write (`/think`, `/nothink`); bytes (`<0x0A>`), which none reads
in a text.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

__all__ = ["TOKENIZERS", "Tokenizer", "added_tokens"]


class Tokenizer(Struct, frozen=True):
    """One tokenizer: where its tokens were taken from, and those that it adds to those of `bases`.

    The tokens stand apart by white space; a blank inside one is written `␣`, and `{0..9}` stands for all these numbers.
    `whole` is False where not all could be looked up: then these are what its chat template and its documents name.
    """

    source: str
    tokens: str
    bases: tuple[str, ...] = ()
    whole: bool = True


_THINK: Final = "<think> </think>"
_CALL: Final = "<tool_call> </tool_call>"
_RESPONSE: Final = "<tool_response> </tool_response>"
_SENTENCES: Final = "<unk> <s> </s>"
_FIM: Final = "<|fim_prefix|> <|fim_middle|> <|fim_suffix|>"
_HY_TAGS: Final = (
    "answer think tool_call tool_calls tool_response tool_responses arg_key arg_value",
    ("", ":opensource"),
)

TOKENIZERS: Final[Mapping[str, Tokenizer]] = {
    # --- Meta ---
    "llama3": Tokenizer(
        "meta-llama/Llama-3.1-8B-Instruct: tokenizer_config.json; meta-llama/llama-models: llama3/tokenizer.py",
        "<|begin_of_text|> <|end_of_text|> <|reserved_special_token_{0..250}|> <|finetune_right_pad_id|> <|step_id|> "
        "<|start_header_id|> <|end_header_id|> <|eom_id|> <|eot_id|> <|python_tag|> <|image|>",
    ),
    "llama4": Tokenizer(
        "meta-llama/Llama-4-Scout-17B-16E-Instruct: tokenizer_config.json; llama-models: llama4/tokenizer.py",
        f"<|begin_of_text|> <|end_of_text|> {_FIM} <|header_start|> <|header_end|> <|eom|> <|eot|> <|step|> "
        "<|text_post_train_reserved_special_token_{0..68}|> <|python_start|> <|python_end|> <|finetune_right_pad|> "
        "<|image_start|> <|image_end|> <|vision_reserved_special_token_{0..1047}|> <|tile_x_separator|> "
        "<|tile_y_separator|> <|image|> <|patch|> <|reasoning_reserved_special_token_{0..7}|> "
        "<|reasoning_thinking_start|> <|reasoning_thinking_end|> <|reserved_special_token_{0..1059}|>",
    ),
    "muse": Tokenizer(
        "not found; chat template of Muse-Glimmer",
        "<|start|> <|message|> <|eom|> <|eot|>",
        ("llama4",),
        whole=False,
    ),
    # --- Qwen and what comes of it ---
    "qwen2.5": Tokenizer(
        "Qwen/Qwen2.5-7B-Instruct: tokenizer_config.json",
        "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> "
        "<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|> "
        f"{_CALL} {_FIM} <|fim_pad|> <|repo_name|> <|file_sep|>",
    ),
    "qwen3": Tokenizer(
        "Qwen/Qwen3-32B and Qwen3-Coder-30B-A3B-Instruct: tokenizer_config.json", f"{_RESPONSE} {_THINK}", ("qwen2.5",)
    ),
    "qwen3.5": Tokenizer(
        "Qwen/Qwen3.5: tokenizer_config.json, 33 added tokens (248044 to 248076)",
        "<|audio_start|> <|audio_end|> <|audio_pad|> <tts_pad> <tts_text_bos> <tts_text_eod> <tts_text_bos_single>",
        ("qwen3",),
    ),
    "mimo": Tokenizer("not found; that of Qwen", "<|mimo_audio_start|> <|mimo_audio_end|>", ("qwen3.5",), whole=False),
    "nanbeige": Tokenizer(
        "not found; chat template of Nanbeige4",
        f"{_SENTENCES} <|im_start|> <|im_end|> <|endoftext|> {_THINK} {_CALL} {_RESPONSE}",
        whole=False,
    ),
    # --- Nous ---
    "hermes2": Tokenizer(
        "NousResearch/Hermes-2-Pro-Mistral-7B and Hermes-2-Pro-Llama-3-8B: added_tokens.json",
        f"{_SENTENCES} <|im_start|> <|im_end|> {_CALL} {_RESPONSE} <tools> </tools> <schema> </schema> "
        "<|begin_internal_thought|> <|end_internal_thought|>",
        ("llama3",),
    ),
    "hermes3": Tokenizer(
        "NousResearch/Hermes-3-Llama-3.1-8B and Hermes-4-70B: tokenizer_config.json, technical report",
        f"<|im_start|> <|im_end|> {_CALL} {_RESPONSE} <tools> </tools> <schema> </schema> {_THINK} "
        "<scratch_pad> </scratch_pad> "
        "<SCRATCHPAD> </SCRATCHPAD> <REASONING> </REASONING> <INNER_MONOLOGUE> </INNER_MONOLOGUE> <PLAN> </PLAN> "
        "<EXECUTION> </EXECUTION> <REFLECTION> </REFLECTION> <THINKING> </THINKING> <SOLUTION> </SOLUTION> "
        "<EXPLANATION> </EXPLANATION> <UNIT_TEST> </UNIT_TEST>",
        ("llama3",),
        whole=False,
    ),
    # --- IBM ---
    "starcoder": Tokenizer(
        "bigcode/starcoder: tokenizer.json (granite-20b-functioncalling); HuggingFaceTB/SmolLM2: tokenizer_config.json",
        "<|endoftext|> <fim_prefix> <fim_middle> <fim_suffix> <fim_pad> <filename> <gh_stars> <issue_start> "
        "<issue_comment> <issue_closed> <jupyter_start> <jupyter_text> <jupyter_code> <jupyter_output> <empty_output> "
        "<commit_before> <commit_msg> <commit_after> <reponame>",
    ),
    "granite_20b": Tokenizer(
        "ibm-granite/granite-20b-functioncalling: tokenizer_config.json", "<|function_call_library|>", ("starcoder",)
    ),
    "granite3": Tokenizer(
        "ibm-granite/granite-3.3-2b-instruct: tokenizer_config.json",
        "<|end_of_text|> <|start_of_role|> <|end_of_role|> <|tool_call|> <|start_of_cite|> <|end_of_cite|> "
        "<|start_of_plugin|> <|end_of_plugin|>",
        ("starcoder",),
    ),
    "granite4": Tokenizer(
        "ibm-granite/granite-4.0-h-tiny: tokenizer.json",
        f"<|pad|> <|end_of_text|> {_FIM} <|fim_pad|> <|filename|> <|reponame|> <|start_of_role|> <|end_of_role|> "
        "<|unused_{1..15}|> <|start_of_plugin|> <|end_of_plugin|> <|endofprompt|> "
        f"{_CALL} {_RESPONSE} {_THINK} <think_on> <think_off> <response> </response> <schema> </schema> "
        "<tools> </tools> <documents> </documents>",
    ),
    # --- DeepSeek ---
    "deepseek": Tokenizer(
        "deepseek-ai/DeepSeek-V3, DeepSeek-R1 and DeepSeek-V3.1: tokenizer.json",
        "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜▁pad▁｜> <｜fim▁hole｜> <｜fim▁begin｜> <｜fim▁end｜> "
        "<｜User｜> <｜Assistant｜> <|EOT|> <｜search▁begin｜> <｜search▁end｜> <｜tool▁calls▁begin｜> "
        "<｜tool▁calls▁end｜> "
        "<｜tool▁call▁begin｜> <｜tool▁call▁end｜> <｜tool▁outputs▁begin｜> <｜tool▁outputs▁end｜> "
        "<｜tool▁output▁begin｜> "
        f"<｜tool▁output▁end｜> <｜tool▁sep｜> <｜place▁holder▁no▁{{0..799}}｜> {_THINK}",
    ),
    "deepseek_v3.2": Tokenizer(
        "deepseek-ai/DeepSeek-V3.2: tokenizer.json, encoding_dsv32.py; V4: tokenizer.json, 1,283 added tokens",
        "｜DSML｜ <dsml: </dsml: <｜begin▁of▁repo▁name｜> <｜end▁of▁repo▁name｜> <｜begin▁of▁file▁name｜> "
        "<｜end▁of▁file▁name｜> <｜begin▁of▁file｜> <｜end▁of▁file｜> <｜place▁holder▁for▁copy｜> "
        "<｜place▁holder▁for▁pointer▁replace｜> <｜begin▁sys｜> <｜end▁sys｜> <｜latest_reminder｜> "
        "<｜action｜> <｜query｜> <｜authority｜> <｜domain｜> <｜task｜> <｜political｜> <｜entity｜> "
        "<｜title｜> <｜safety｜> <｜answer｜> "
        "<｜search｜> <｜extracted_url｜> <｜read_url｜> <｜end_of_query｜> <｜rl_image_pad｜> <｜rl_image_start｜> "
        "<｜image2｜> <｜/table>｜ <｜table｜> <｜/td｜> <｜td｜> <｜/tr｜> <｜tr｜> <｜/polygon｜> <｜polygon｜> "
        "<｜/point｜> <｜point｜> <｜/box｜> <｜box｜> <｜/ref｜> <｜ref｜> <｜image｜> "
        "<|place_holder_mm_span_00{21..99}|> <|place_holder_mm_span_0{100..435}|>",
        ("deepseek",),
    ),
    # --- Mistral ---
    "mistral_v1": Tokenizer("mistralai/Mixtral-8x7B-Instruct-v0.1: tokenizer.json", _SENTENCES),
    "mistral_v3": Tokenizer(
        "mistralai/Mistral-7B-Instruct-v0.3: tokenizer.json",
        "[INST] [/INST] [TOOL_CALLS] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] "
        "[IMG] [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [control_{8..768}]",
        ("mistral_v1",),
    ),
    "tekken": Tokenizer(
        "mistralai/mistral-common: tekken.py, base.py (SpecialTokens), tekken.json of v3 to v15 and of Voxtral",
        f"{_SENTENCES} <pad> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] "
        "[TOOL_CALLS] [TOOL_CONTENT] [IMG] [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] "
        "[/SYSTEM_PROMPT] [AUDIO] [BEGIN_AUDIO] [TRANSCRIBE] [ARGS] [CALL_ID] [THINK] [/THINK] [REF] [STREAMING_PAD] "
        "[STREAMING_WORD] [OUTPUT_AUDIO] [REPEAT_AUDIO_TEXT] [NEXT_AUDIO_TEXT] "
        "[MODEL_SETTINGS] [/MODEL_SETTINGS] <SPECIAL_{0..999}>",
    ),
    "apriel": Tokenizer(
        "not found; that of Mistral Nemo, chat template of Apriel-1.6-15b-Thinker",
        "<|begin_system|> <|begin_user|> <|begin_assistant|> <|begin_tool_result|> <|begin_content|> <|end|>",
        ("tekken",),
        whole=False,
    ),
    "apertus": Tokenizer(
        "swiss-ai/Apertus-8B-2509: tokenizer.json, 72 tokens with names in place of the first of Mistral Nemo's",
        "<filename> <gh_stars> <issue_start> <issue_comment> <issue_closed> <jupyter_start> <jupyter_text> "
        "<jupyter_code> <jupyter_output> <empty_output> <commit_before> <commit_msg> <commit_after> <reponame> "
        f"{_THINK} <answer> </answer> <iban-pii> <email-pii> <ip-pii> <file_sep> <code_to_intermediate> "
        "<intermediate_to_code> <pr> <pr_status> <pr_is_merged> <pr_base> <pr_file> <pr_base_code> <pr_diff> "
        "<pr_diff_hunk> <pr_comment> <pr_event_id> <pr_review> <pr_review_state> <pr_review_comment> "
        "<pr_in_reply_to_review_id> <pr_in_reply_to_comment_id> <pr_diff_hunk_comment_line> <|fim_begin|> "
        "<|fim_hole|> <|fim_end|> "
        "<|system_start|> <|system_end|> <|developer_start|> <|developer_end|> <|user_start|> <|user_end|> "
        "<|assistant_start|> <|assistant_end|> <|inner_prefix|> <|inner_suffix|> <|tools_prefix|> <|tools_suffix|>",
        ("tekken",),
    ),
    # --- NVIDIA ---
    "nemotron": Tokenizer(
        "not found; that of Mistral Nemo, chat templates of NVIDIA-Nemotron-Nano-9B-v2 and Nemotron 3",
        f"<|im_start|> <|im_end|> {_THINK} {_CALL} {_RESPONSE}",
        ("tekken",),
        whole=False,
    ),
    # --- Google ---
    "gemma3": Tokenizer(
        "google/gemma-3-27b-it: tokenizer.json; google-deepmind/gemma: _tokenizer.py",
        "<pad> <eos> <bos> <unk> <mask> [multimodal] <unused{0..6241}> <start_of_turn> <end_of_turn> <start_of_image> "
        "<end_of_image> <image_soft_token> <start_of_audio> <end_of_audio> <audio_soft_token>",
    ),
    "functiongemma": Tokenizer(
        "google/functiongemma-270m-it: tokenizer_config.json",
        "<start_function_declaration> <end_function_declaration> <start_function_call> <end_function_call> "
        "<start_function_response> <end_function_response> <escape>",
        ("gemma3",),
    ),
    "gemma4": Tokenizer(
        "google/gemma-4-31B-it: tokenizer_config.json",
        "<pad> <eos> <bos> <unk> <mask> [multimodal] <unused{0..6241}> <|turn> <turn|> <|channel> <channel|> <|tool> "
        '<tool|> <|tool_call> <tool_call|> <|tool_response> <tool_response|> <|think|> <|"|> <|image> <image|> '
        "<|image|> <|audio> <audio|> <|audio|> <|video> <video|> <|video|>",
    ),
    # --- OpenAI ---
    "o200k_harmony": Tokenizer(
        "openai/harmony: src/tiktoken_ext/public_encodings.rs",
        "<|startoftext|> <|endoftext|> <|return|> <|constrain|> <|channel|> <|start|> <|end|> <|message|> <|call|> "
        "<|endofprompt|> <|reserved_{200000..201087}|>",
    ),
    "llm_jp_4": Tokenizer(
        "not found; its chat template is Harmony's",
        f"{_SENTENCES} <pad> <mask> <CLS|LLM-jp> <SEP|LLM-jp> <EOD|LLM-jp>",
        ("o200k_harmony",),
        whole=False,
    ),
    # --- Cohere ---
    "cohere": Tokenizer(
        "CohereForAI/c4ai-command-r-plus-08-2024 and c4ai-command-r7b-12-2024: tokenizer_config.json",
        "<PAD> <UNK> <CLS> <SEP> <MASK_TOKEN> <BOS_TOKEN> <EOS_TOKEN> <EOP_TOKEN> <|START_OF_TURN_TOKEN|> "
        "<|END_OF_TURN_TOKEN|> <|YES_TOKEN|> <|NO_TOKEN|> <|GOOD_TOKEN|> <|BAD_TOKEN|> <|USER_TOKEN|> "
        "<|CHATBOT_TOKEN|> "
        "<|SYSTEM_TOKEN|> <|USER_{0..9}_TOKEN|> <|EXTRA_{0..9}_TOKEN|> <|START_THINKING|> <|END_THINKING|> "
        "<|START_RESPONSE|> <|END_RESPONSE|> <|START_ACTION|> <|END_ACTION|> <|START_TOOL_RESULT|> <|END_TOOL_RESULT|> "
        "<|START_TEXT|> <|END_TEXT|> <|NEW_FILE|> <|BEGINNING_OF_PREFIX_FIM_TOKEN|> <|BEGINNING_OF_MIDDLE_FIM_TOKEN|> "
        "<|BEGINNING_OF_SUFFIX_FIM_TOKEN|> <|END_OF_MIDDLE_FIM_TOKEN|>",
    ),
    # --- Zhipu ---
    "glm4": Tokenizer(
        "zai-org/GLM-4.5 and GLM-4.5V: tokenizer_config.json",
        "<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> <|observation|> "
        "<|begin_of_image|> <|end_of_image|> <|begin_of_video|> <|end_of_video|> <|begin_of_audio|> <|end_of_audio|> "
        "<|begin_of_transcription|> <|end_of_transcription|> <|code_prefix|> <|code_middle|> <|code_suffix|> "
        f"{_THINK} {_CALL} {_RESPONSE} <arg_key> </arg_key> <arg_value> </arg_value> <|begin_of_box|> <|end_of_box|> "
        "<|image|> <|video|>",
    ),
    "spark": Tokenizer("not found", f"{_SENTENCES} <pad> <end> <User> <Bot> <System>", whole=False),
    # --- Moonshot ---
    "kimi_k2": Tokenizer(
        "moonshotai/Kimi-K2-Instruct, Kimi-K2-Thinking and Kimi-K2.5: tokenizer_config.json, tokenization_kimi.py",
        "[BOS] [EOS] [EOT] [UNK] [PAD] <|im_end|> <|im_user|> <|im_assistant|> <|im_system|> <|im_middle|> "
        "<|start_header_id|> <|end_header_id|> [start_header_id] [end_header_id] <|tool_calls_section_begin|> "
        "<|tool_calls_section_end|> <|tool_call_begin|> <|tool_call_argument_begin|> <|tool_call_end|> <|media_begin|> "
        f"<|media_content|> <|media_end|> <|media_pad|> <|media_placeholder|> <|reserved_token_{{163584..163839}}|> "
        f"{_THINK}",
    ),
    "kimi_k3": Tokenizer(
        "moonshotai/Kimi-K3: tokenizer_config.json, 16 added tokens",
        "<|open|> <|close|> <|sep|> <|end_of_msg|> <osagent_mode>",
        ("kimi_k2",),
    ),
    # --- MiniMax ---
    "minimax": Tokenizer(
        "MiniMaxAI/MiniMax-M2 and M2.5: tokenizer_config.json",
        "<code_interpreter> <commit_after> <commit_before> <commit_msg> <empty_output> <filename> <fim_middle> "
        "<fim_pad> "
        "<fim_prefix> <fim_suffix> <function_call> <gh_stars> ]<]speech[>[ ]<]image[>[ ]<]video[>[ "
        "]<]start␣of␣speech[>[ "
        "]<]end␣of␣speech[>[ ]<]start␣of␣image[>[ ]<]end␣of␣image[>[ ]<]start␣of␣video[>[ ]<]end␣of␣video[>[ "
        "]<]vision␣pad[>[ ]~!b[ ]~b] [e~[ ]!d~[ ]!p~[ <issue_closed> <issue_comment> <issue_start> <jupyter_code> "
        "<jupyter_output> <jupyter_start> <jupyter_text> <jupyter_error> <reponame> <add_file> <delete_file> "
        "<rename_file> <edit_file> <commit_message> <empty_source_file> <repo_struct> <code_context> <file_content> "
        f"<source_files> <pr_start> <review_comment> <filepath> <file_sep> {_THINK} "
        "<minimax:tool_call> </minimax:tool_call>",
    ),
    "minimax_m3": Tokenizer(
        "not found; chat template of MiniMax-M3", "]<]minimax[>[ <mm:think> </mm:think>", ("minimax",), whole=False
    ),
    # --- Tencent ---
    "hunyuan": Tokenizer(
        "not found; tencent/Hunyuan-A13B-Instruct: hy.tiktoken, tokenization_hy.py",
        "<|startoftext|> <|endoftext|> <|bos|> <|eos|> <|pad|> <|extra_{0..204}|>",
        whole=False,
    ),
    "hy3": Tokenizer(
        "tencent/Hy3-preview: tokenizer_config.json",
        "<｜hy_begin▁of▁sentence｜> <｜hy_end▁of▁sentence｜> <｜hy_▁pad▁｜> <｜hy_fim▁hole｜> <｜hy_fim▁begin｜> "
        "<｜hy_fim▁end｜> "
        "<｜hy_User｜> <｜hy_Assistant｜> <｜hy_EOT｜> <｜hy_eos｜> <｜hy_place▁holder▁no▁{0..799}｜> "
        "<｜reasoning_mode｜> "
        "<｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <｜tool▁call▁begin｜> <｜tool▁call▁end｜> <｜tool▁sep｜> "
        "<｜tool▁output▁begin｜> <｜tool▁output▁end｜> <tool_sep> <tool_sep:opensource> "
        + " ".join(f"<{slash}{tag}{end}>" for tag in _HY_TAGS[0].split() for slash in ("", "/") for end in _HY_TAGS[1]),
    ),
    # --- Shanghai AI Laboratory ---
    "internlm2": Tokenizer(
        "internlm/internlm2_5-7b-chat: tokenizer_config.json, tokenization_internlm2.py",
        f"{_SENTENCES} <|im_start|> <|im_end|> <|action_start|> <|action_end|> <|interpreter|> <|plugin|> "
        "[UNUSED_TOKEN_{0..397}]",
    ),
    "internlm3": Tokenizer(
        "internlm/internlm3-8b-instruct: tokenizer_config.json",
        "<restate> </restate> <planning> </planning> <recollect> </recollect> <execution> </execution> <review> "
        "</review> <summarize> </summarize> <retry> </retry> <conclude> </conclude>",
        ("internlm2",),
        whole=False,
    ),
    "intern_s1": Tokenizer(
        "internlm/Intern-S1: tokenizer_config.json",
        "<|action_start|> <|action_end|> <|interpreter|> <|plugin|> <img> </img> <IMG_CONTEXT> <quad> </quad> <ref> "
        "</ref> <box> </box> <video> </video> <SMILES> </SMILES> <SELFIES> </SELFIES> <IUPAC> </IUPAC> <MOLFORMULA> "
        "</MOLFORMULA> <FASTA> </FASTA> <PROTEIN> </PROTEIN>",
        ("qwen3",),
        whole=False,
    ),
    # --- others ---
    "jamba": Tokenizer(
        "not found; chat template of Jamba-1.5",
        "<|pad|> <|startoftext|> <|endoftext|> <|unk|> <|bom|> <|eom|> <|system|> <|user|> <|assistant|> <|tool|>",
        whole=False,
    ),
    "lfm2": Tokenizer(
        "LiquidAI/LFM2-Tokenizer: README.md; LFM2.5: tokenizer.json",
        "<|pad|> <|startoftext|> <|endoftext|> <|fim_pre|> <|fim_mid|> <|fim_suf|> <|im_start|> <|im_end|> "
        "<|tool_list_start|> <|tool_list_end|> <|tool_call_start|> <|tool_call_end|> <|tool_response_start|> "
        "<|tool_response_end|> <|reserved_{0..511}|> <|cot_start|> <|cot_end|> <|review_start|> <|review_end|> "
        f"<|file_start|> <|file_end|> <|image_start|> <|image_end|> <|img_thumbnail|> <image> {_THINK}",
    ),
    "openpangu": Tokenizer(
        "not found; chat template of openPangu-Embedded-7B",
        f"{_SENTENCES} <pad> [unused{{0..31}}]",
        whole=False,
    ),
    "phi4_mini": Tokenizer(
        "not found as a whole; microsoft/Phi-4-mini-instruct: chat template; Phi-4-multimodal and Phi-4: tokenizers",
        "<|endoftext|> <|endofprompt|> <|system|> <|user|> <|assistant|> <|end|> <|tool|> <|/tool|> <|tool_call|> "
        "<|/tool_call|> <|tool_response|> <|tag|> <|dummy_{0..85}|> <|endoftext10|> <|endoftext11|>",
        whole=False,
    ),
    "dolma2": Tokenizer(
        "allenai/dolma2-tokenizer-special-tokens-v5 and olmo-3-tokenizer-instruct-dev: README.md",
        f"<|extra_id_{{0..10}}|> <|endoftext|> {_FIM} |||PHONE_NUMBER||| |||EMAIL_ADDRESS||| |||IP_ADDRESS||| "
        "<|im_start|> <|im_end|> <functions> </functions> <function_calls> </function_calls> <|endofprompt|> <|pad|>",
    ),
    "seed_oss": Tokenizer(
        "not found; ByteDance-Seed/Seed-OSS-36B-Instruct: README.md, chat template; Seed-Coder: tokenizer_config.json",
        "<seed:bos> <seed:eos> <seed:pad> <seed:think> </seed:think> <seed:cot_budget_reflect> "
        "</seed:cot_budget_reflect> <seed:tool_call> </seed:tool_call> <[begin▁of▁sentence]> <[end▁of▁sentence]> "
        "<[PAD▁TOKEN]> <[SEP▁TOKEN]> <[fim-prefix]> <[fim-middle]> <[fim-suffix]> <[PLHD{0..127}_never_used]>",
        whole=False,
    ),
    "smollm3": Tokenizer(
        "HuggingFaceTB/SmolLM3-3B: tokenizer_config.json",
        f"<|im_start|> <|im_end|> {_THINK} {_CALL} {_RESPONSE}",
        ("llama3",),
    ),
    "trinity": Tokenizer(
        "not found; chat template of Trinity-Mini",
        f"<|begin_of_text|> <|end_of_text|> <|im_start|> <|im_end|> {_THINK} {_CALL} {_RESPONSE}",
        whole=False,
    ),
    "reka": Tokenizer(
        "not found; chat template of Reka Flash 3",
        f"<|endoftext|> <sep> <image> <video> <audio> <reasoning> </reasoning> {_CALL} {_RESPONSE}",
        whole=False,
    ),
    "ernie4.5": Tokenizer(
        "not found; baidu/ERNIE-4.5-21B-A3B-Thinking: tokenizer_config.json, chat template",
        f"{_SENTENCES} <pad> <cls> <sep> <mask> <mask:{{0..7}}> <|begin_of_sentence|> <|end_of_sentence|> <|im_start|> "
        f"<|im_end|> <|endoftext|> <|LOC_{{0..1000}}|> {_THINK} {_CALL} <tool_output> </tool_output> <response> "
        "</response>",
        whole=False,
    ),
    "exaone4": Tokenizer(
        "not found; LGAI-EXAONE/EXAONE-4.0-32B: chat template",
        "[PAD] [BOS] [EOS] [UNK] [|endofturn|] [|system|] [|user|] [|assistant|] [|tool|] <|endofturn|> "
        f"{_THINK} {_CALL} <tool_result> </tool_result>",
        whole=False,
    ),
    "gigachat3": Tokenizer(
        "not found; chat template of GigaChat3-10B-A1.8B",
        f"{_SENTENCES} <|message_sep|> <|role_sep|> <|function_call|>",
        whole=False,
    ),
    "step3": Tokenizer(
        "not found; stepfun-ai/step3: chat template, processing_step3.py",
        "<|BOT|> <|EOT|> <|CALL_START|> <|CALL_END|> <|THINK_START|> <|THINK_END|> <｜tool_calls_begin｜> "
        "<｜tool_calls_end｜> <｜tool_call_begin｜> <｜tool_call_end｜> <｜tool_sep｜> <im_start> <im_end> <im_patch> "
        "<patch_start> <patch_end> <patch_newline> <|IMG_START|> <|IMG_END|>",
        ("deepseek",),
        whole=False,
    ),
    "step3.5": Tokenizer(
        "not found; chat template of Step-3.5-Flash",
        f"<|im_start|> <|im_end|> {_CALL} {_RESPONSE}",
        ("step3",),
        whole=False,
    ),
    "ling": Tokenizer(
        "inclusionAI/Ling-lite: tokenizer_config.json; chat template of Ling-3.0",
        "<|startoftext|> <|endoftext|> [CLS] [gMASK] [MASK] <|reserved_token_{0..250}|> <|number_start|> "
        "<|number_end|> "
        "<|arithmetic_start|> <|arithmetic_end|> <role> </role> <|role_end|> <arg_key> </arg_key> <arg_value> "
        "</arg_value> "
        f"{_THINK} {_CALL} {_RESPONSE}",
        whole=False,
    ),
    "longcat": Tokenizer(
        "not found; chat template of LongCat-Flash-Chat",
        "<longcat_unk> <longcat_s> </longcat_s> <longcat_pad> <longcat_think> </longcat_think> <longcat_tool_call> "
        "</longcat_tool_call> <longcat_arg_key> </longcat_arg_key> <longcat_arg_value> </longcat_arg_value> "
        "<longcat_tool_response> </longcat_tool_response> <longcat_system> <longcat_user> <longcat_assistant>",
        whole=False,
    ),
    "laguna": Tokenizer(
        # Its roles (`<system>`, `<user>`, `<assistant>`) are in the list of its format only: they are words elsewhere.
        "not found; chat templates of Laguna-XS.2 and XS-2.1",
        f"〈|EOS|〉 〈|BOS|〉 〈|PAD|〉 〈|UNK|〉 {_THINK} {_CALL} {_RESPONSE} <arg_key> </arg_key> "
        "<arg_value> </arg_value>",
        whole=False,
    ),
    "dots": Tokenizer(
        "not found; rednote-hilab/dots.llm1.inst: chat template; vLLM's parser for dots 3",
        "<|system|> <|endofsystem|> <|user|> <|endofuser|> <|assistant|> <|endofassistant|> <|observation|> "
        f"<|endofobservation|> <|endoftext|> {_THINK} <dots_function_call> </dots_function_call> "
        "<dots_function_response> </dots_function_response>",
        whole=False,
    ),
    "minicpm5": Tokenizer(
        "not found; openbmb/MiniCPM4-8B: tokenizer_config.json; chat template of MiniCPM5-1B",
        f"{_SENTENCES} <|im_start|> <|im_end|> <|tool_call|> <|execute_start|> <|execute_end|> <|fim_prefix|> "
        f"<|fim_middle|> <|fim_suffix|> <image_id> </image_id> <unused{{0..63}}> {_THINK}",
        whole=False,
    ),
    "plamo3": Tokenizer(
        "not found; vLLM 0.33.0: parser and tests of plamo3",
        "<|plamo:unk|> <|plamo:bos|> <|plamo:eos|> <|plamo:pad|> <|plamo:cls|> <|plamo:sep|> <|plamo:mask|> "
        "<|plamo:tag|> <|plamo:msg|> <|plamo:constrain|>",
        whole=False,
    ),
    "solar": Tokenizer(
        "not found; parsers solar_open2 of vLLM and SGLang",
        f"{_SENTENCES} <|startoftext|> <|endoftext|> <|im:start|> <|im:content|> <|im:end|> <|tool:start|> "
        "<|tool:end|>",
        whole=False,
    ),
    "k2_horizon": Tokenizer(
        "not found; vLLM's parser k2_horizon, model card of K2-Horizon",
        "<|im_start|> <|im_end|> <|endoftext|> <ifm|tool_calls> </ifm|tool_calls> <ifm|tool_call> </ifm|tool_call> "
        "<ifm|think> </ifm|think> <ifm|think_fast> </ifm|think_fast> <ifm|think_faster> </ifm|think_faster> "
        "<ifm|arg_key> </ifm|arg_key> <ifm|arg_value> </ifm|arg_value> <ifm|arg_type> </ifm|arg_type>",
        whole=False,
    ),
    "iquest": Tokenizer(
        "not found; SGLang's parser iquest_q1",
        "<|iquest_system|> <|iquest_developer|> <|iquest_user|> <|iquest_assistant|> <|iquest_end|> <iquest_tool_call> "
        f"</iquest_tool_call> <arg_key> </arg_key> <arg_value> </arg_value> {_THINK} {_RESPONSE}",
        whole=False,
    ),
    "inkling": Tokenizer(
        "not found; vLLM 0.33.0: parser and tests of inkling",
        "<|message_system|> <|message_user|> <|message_tool|> <|message_model|> <|content_text|> <|content_thinking|> "
        "<|content_invoke_tool_json|> <|content_invoke_tool_text|> <|end_message|> <|content_model_end_sampling|>",
        whole=False,
    ),
    "beam": Tokenizer(
        "not found; vLLM's parser for Beam; its tokens are Harmony's", "", ("o200k_harmony",), whole=False
    ),
}


@cache
def added_tokens(name: str) -> tuple[str, ...]:
    """All added tokens of a tokenizer of the table."""
    tokenizer = TOKENIZERS[name]
    tokens = [token for base in tokenizer.bases for token in added_tokens(base)]
    for written in tokenizer.tokens.split():
        tokens += _numbered(written.replace("␣", " "))
    return tuple(dict.fromkeys(tokens))


_RANGE: Final = re.compile(r"\{(\d+)\.\.(\d+)\}")


def _numbered(token: str) -> Iterator[str]:
    found = _RANGE.search(token)
    if found is None:
        yield token
    else:
        for number in range(int(found[1]), int(found[2]) + 1):
            yield f"{token[: found.start()]}{number}{token[found.end() :]}"
