"""Token counts: exact for OpenAI's models, never too few, and never slow."""

from __future__ import annotations

import functools
import gzip
import hashlib
import inspect
import json
import random
import re
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from mnemon.context import tokens
from mnemon.context.tokens import Counter, Vocabulary, message_tokens, tools_tokens

SOURCES = {"cl100k_base": openai_public.cl100k_base, "o200k_base": openai_public.o200k_base}

NASTY = [
    "",
    "hello world",
    "<|endoftext|> and <|im_start|>system<|im_end|> are only text",
    "don't we'll I'VE they'd",
    "a\r\n\r\n  b\t\tc   \n\n\n   d ",
    "getUserByIdAndTenant XMLHttpRequest HTTPServer",
    "1234567890 12.5% 3,141,592.65",
    "Grüße, 你好，世界。こんにちは 안녕하세요 שלום مرحبا नमस्ते สวัสดี",
    "👩‍👩‍👧‍👦🇩🇪❤️ e\u0301 \u200b\ufeff\x00\x1f",
    '{"a":[1,2,{"b":null}],"c":"\\u00e9"}',
    "=" * 300 + "-" * 77 + "_" * 13,
    "x" + " " * 900 + "y",
]


def definition(vocabulary: Vocabulary) -> dict[str, Any]:
    """The arguments of `tiktoken.Encoding` as tiktoken's source has them, without its download."""
    source = SOURCES[vocabulary.name]
    plain = type(source)(source.__code__, {**source.__globals__, "load_tiktoken_bpe": lambda *_, **__: vocabulary.ranks()})
    made: dict[str, Any] = plain()
    return made


@functools.cache
def reference(vocabulary: Vocabulary) -> tiktoken.Encoding:
    """What tiktoken itself counts, fed with the shipped ranks and its own patterns."""
    return tiktoken.Encoding(**definition(vocabulary))


@pytest.fixture(params=["cl100k_base", "o200k_base"])
def pair(request: pytest.FixtureRequest) -> tuple[Counter, tiktoken.Encoding]:
    """A loaded exact counter and tiktoken for the same vocabulary."""
    counter = Counter.for_model("gpt-4" if request.param == "cl100k_base" else "gpt-4o")
    assert counter.vocabulary.name == request.param
    assert counter.ready(60)
    return counter, reference(counter.vocabulary)


@pytest.fixture
def estimate() -> Counter:
    """A loaded counter for a model nobody knows."""
    counter = Counter.for_model(None)
    assert counter.ready(60)
    return counter


# --- the shipped vocabularies ---


@pytest.mark.parametrize("vocabulary", [tokens.CL100K, tokens.O200K], ids=lambda v: str(v.name))
def test_the_shipped_ranks_are_openais(vocabulary: Vocabulary) -> None:
    """The unzipped files have the SHA-256 that stands in tiktoken's own source."""
    said = re.search(r'expected_hash="([0-9a-f]{64})"', inspect.getsource(SOURCES[vocabulary.name]))
    assert said is not None
    raw = gzip.decompress((tokens.DATA / f"{vocabulary.name}.tiktoken.gz").read_bytes())
    assert hashlib.sha256(raw).hexdigest() == said[1]
    assert said[1] in (tokens.DATA / "README.md").read_text()


def test_the_patterns_are_tiktokens() -> None:
    """The patterns that cut a text into words are those of tiktoken's own source."""
    assert definition(tokens.CL100K)["pat_str"] == tokens.CL100K_PATTERN
    assert definition(tokens.O200K)["pat_str"] == tokens.O200K_PATTERN


# --- which counter for which model ---


@pytest.mark.parametrize("name", sorted(tiktoken.model.MODEL_TO_ENCODING))
def test_every_model_that_tiktoken_knows_gets_its_vocabulary_or_an_estimate(name: str) -> None:
    """An exact counter never has another vocabulary than tiktoken gives the model."""
    counter = Counter.for_model(name)
    if counter.exact:
        assert counter.vocabulary.name == tiktoken.model.MODEL_TO_ENCODING[name]


@pytest.mark.parametrize(
    "name",
    (
        "gpt-4o gpt-4o-mini-2024-07-18 chatgpt-4o-latest gpt-4.1 gpt-4.1-nano gpt-4.5-preview gpt-5 gpt-5-mini gpt-5.1-codex gpt-oss-120b "
        "o1 o1-mini o3-pro o4-mini openai/gpt-4o openrouter/openai/o3 GPT-4o ft:gpt-4o:x"
    ).split(),
)
def test_o200k_models(name: str) -> None:
    """The newer models of OpenAI are counted exactly with o200k."""
    counter = Counter.for_model(name)
    assert (counter.vocabulary.name, counter.exact) == ("o200k_base", True)


@pytest.mark.parametrize(
    "name", ["gpt-4", "gpt-4-turbo", "gpt-4-0613", "gpt-3.5-turbo", "gpt-35-turbo-16k", "azure/gpt-4", "ft:gpt-3.5-turbo:x"]
)
def test_cl100k_models(name: str) -> None:
    """The older models of OpenAI are counted exactly with cl100k."""
    counter = Counter.for_model(name)
    assert (counter.vocabulary.name, counter.exact) == ("cl100k_base", True)


@pytest.mark.parametrize(
    "name", [None, "", "mnemon", "mock-model", "llama3", "qwen2.5", "o2", "o1x", "gpt-4x", "gpt-6", "acme/gpt-4", "/", "gpt2"]
)
def test_other_models_are_estimated(name: str | None) -> None:
    """A model that is not OpenAI's gets the estimate, whatever its name resembles."""
    counter = Counter.for_model(name)
    assert (counter.vocabulary.name, counter.exact) == ("cl100k_base", False)


# --- counting ---


@pytest.mark.parametrize("text", NASTY)
def test_exact_on_nasty_text(pair: tuple[Counter, tiktoken.Encoding], text: str) -> None:
    """Nasty text counts as tiktoken counts it, special tokens' names included."""
    counter, encoding = pair
    assert counter.count(text) == len(encoding.encode_ordinary(text))


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=300))
def test_exact_on_any_text(text: str) -> None:
    """Any text counts as tiktoken counts it, and never more than its bytes."""
    for vocabulary in (tokens.CL100K, tokens.O200K):
        assert vocabulary.ready(60)
        assert vocabulary.count(text) == len(reference(vocabulary).encode_ordinary(text)) <= tokens.size(text)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40), min_size=1, max_size=30), st.integers(200, 400))
def test_long_text_with_spaces_is_exact(words: list[str], times: int) -> None:
    """Cutting long text into pieces before spaces changes no count."""
    text = " ".join((words * times)[:times])
    for vocabulary in (tokens.CL100K, tokens.O200K):
        assert vocabulary.ready(60)
        if not any(cut[1] for cut in tokens.PIECE.finditer(text)):
            assert vocabulary.count(text) == len(reference(vocabulary).encode_ordinary(text))


def test_long_text_without_spaces_is_never_under_counted(pair: tuple[Counter, tiktoken.Encoding]) -> None:
    """A blind cut inside a word adds a little and takes nothing away."""
    counter, encoding = pair
    rnd = random.Random(5)
    words = "the of and which people water number look could first made about these part".split()
    for alphabet in (words, list("abcdefgh"), list("AaBb01+/"), list("中文的是不了"), [" ", "\t"], ["\n", " "], list("0123456789")):
        text = "".join(rnd.choices(alphabet, k=12_000))
        exact = len(encoding.encode_ordinary(text))
        assert exact <= counter.count(text) <= exact + (tokens.CUT + 4) * (len(text) // 4000 + 1)


def test_lone_surrogates_count_as_tiktoken_counts_them(pair: tuple[Counter, tiktoken.Encoding]) -> None:
    """Half a surrogate pair does not crash, in short and in long text, loaded or not."""
    counter, encoding = pair
    for text in ("a\ud800b", "\udfff", "\ud83d\ude00 ok", "word \ud800 " * 2000):
        assert counter.count(text) == len(encoding.encode_ordinary(text))
        assert tokens.size(text) >= counter.count(text)


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=200))
def test_the_bound_before_loading_holds(text: str) -> None:
    """The count before loading is never below the count after it, estimate included."""
    before = Vocabulary("cl100k_base", tokens.CL100K_PATTERN)
    for model in ("gpt-4", "gpt-4o", "llama3"):
        loaded = Counter.for_model(model)
        assert loaded.ready(60)
        unloaded = Counter(before, exact=loaded.exact)
        assert not unloaded.loaded
        assert unloaded.count(text) >= loaded.count(text)


@settings(deadline=None, max_examples=200)
@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), min_size=0, max_size=200))
def test_the_estimate_is_never_below_the_count(text: str) -> None:
    """For an unknown model a text costs at least what cl100k says, and each digit a token."""
    counter = Counter.for_model("llama3")
    assert counter.ready(60)
    assert counter.count(text) >= Counter.for_model("gpt-4").count(text)
    assert counter.count(text) >= sum(c in "0123456789" for c in text)


def test_the_estimate_holds_for_tokenizers_that_split_digits(estimate: Counter) -> None:
    """A column of numbers is estimated by digits, as Qwen, Mistral and Gemma count it."""
    assert estimate.count("1234567890" * 10) == 100
    assert estimate.count("plain words here") == 4  # three tokens and 30 %


@pytest.mark.parametrize(("unit", "model"), [("a", "gpt-4"), (" ", "gpt-4o"), ("\n", "gpt-4"), ("中", "gpt-4o"), (" ", None), ("1a", None)])
def test_two_megabytes_are_counted_at_once(unit: str, model: str | None) -> None:
    """Two megabytes of anything neither hang nor crash the tokenizer."""
    text = unit * (2_000_000 // len(unit.encode())) + "x"
    counter = Counter.for_model(model)
    assert counter.ready(60)
    start = time.thread_time()
    assert 0 < counter.count(text) <= 2_000_001
    assert time.thread_time() - start < 5  # 0.2 to 0.9 s here; the guard is against minutes


# --- loading ---


def test_nothing_is_loaded_until_asked() -> None:
    """Importing and counting load nothing: not the vocabulary, not even tiktoken."""
    code = (
        "import sys, threading\n"
        "from mnemon.context.tokens import Counter\n"
        "c = Counter.for_model('gpt-4o')\n"
        "assert c.count('grün') == 5 and not c.loaded\n"
        "assert 'tiktoken' not in sys.modules and threading.active_count() == 1\n"
        "assert c.ready(60) and c.loaded and c.count('hello world') == 2\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_warming_many_times_loads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warming from many threads at once starts one load; everybody may wait for it."""
    loads: list[int] = []
    vocabulary = Vocabulary("cl100k_base", tokens.CL100K_PATTERN)

    def ranks() -> dict[bytes, int]:
        loads.append(1)
        return {bytes([i]): i for i in range(256)}

    monkeypatch.setattr(vocabulary, "ranks", ranks)
    threads = [threading.Thread(target=vocabulary.ready) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]
    assert vocabulary.loaded
    assert vocabulary.count("abc") == 3


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_missing_vocabulary_leaves_the_bound() -> None:
    """If the file cannot be read the bound stays in force, and nobody waits for ever."""
    vocabulary = Vocabulary("no_such", tokens.CL100K_PATTERN)
    assert not vocabulary.ready(10)
    assert vocabulary.count("hello") == 5


# --- whole requests ---


def bytewise() -> Counter:
    """A counter whose tokens are bytes, so that prices can be read off."""
    return Counter(Vocabulary("cl100k_base", tokens.CL100K_PATTERN), exact=True)


def test_an_allowance_is_in_the_model_s_own_tokens() -> None:
    """An estimate that counts 30 % too many allows 30 % more; a count that is exact allows what was said."""
    estimate, exact = Counter.for_model("qwen"), Counter.for_model("gpt-4o")
    for counter in (estimate, exact):
        counter.ready()
    text = "The tram to the harbour leaves at nine, and the ferry waits for it. " * 20
    wanted = exact.count(text)
    assert exact.allowance(wanted) == wanted
    assert abs(estimate.count(text) - estimate.allowance(wanted)) < wanted // 20


def test_a_text_message_costs_its_text_and_four() -> None:
    """Role and frame of a message cost four tokens; empty content nothing more."""
    assert message_tokens(bytewise(), {"role": "user", "content": "hello"}) == 9
    assert message_tokens(bytewise(), {"role": "assistant", "content": None}) == 4
    assert message_tokens(bytewise(), {"role": "user", "content": ""}) == 4


def test_everything_in_a_message_has_its_price() -> None:
    """Names, tool calls, call ids, reasoning and parts of unknown kind are counted."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    plain = message_tokens(bytewise(), {"role": "assistant", "content": None})
    for field in ({"name": "bob"}, {"tool_calls": [call]}, {"tool_call_id": "c1"}, {"reasoning_content": "hm"}, {"content": {"odd": 1}}):
        value = next(iter(field.values()))
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        assert message_tokens(bytewise(), {"role": "assistant", "content": None, **field}) >= plain + len(text)


@pytest.mark.parametrize(
    ("part", "price"),
    [
        ({"type": "text", "text": "hello"}, 5),
        ({"type": "refusal", "refusal": "no"}, 2),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9000, "detail": "low"}}, 85),
        ({"type": "image_url", "image_url": {"url": "https://x/y.png"}}, 1445),
        ({"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "high"}}, 1445),
        ({"type": "odd"}, len('{"type":"odd"}')),
        ({"type": "text", "text": None}, len('{"type":"text","text":null}')),
        ("loose", len('"loose"')),
    ],
)
def test_parts_have_their_price(part: Any, price: int) -> None:
    """Text costs its tokens, an image a fixed price, anything else its JSON."""
    assert message_tokens(bytewise(), {"role": "user", "content": [part]}) == 4 + price


def test_tools_and_schemas_cost_their_json() -> None:
    """Tools, functions and a response format are counted; absent and empty ones are free."""
    tool = {"type": "function", "function": {"name": "grüß", "parameters": {"type": "object"}}}
    size = len(json.dumps([tool], ensure_ascii=False, separators=(",", ":")).encode())
    assert tools_tokens(bytewise(), {"tools": [tool]}) == size + tokens.TOOLS
    assert tools_tokens(bytewise(), {"tools": [], "functions": None, "temperature": 1}) == 0
    both = {"functions": [tool["function"]], "response_format": {"type": "json_object"}}
    assert tools_tokens(bytewise(), both) > len("json_object") + 2 * tokens.TOOLS
