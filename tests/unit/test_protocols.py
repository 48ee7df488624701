import argparse

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval import protocols
from system.errors import UserError
from tasks import prompts
from tests.user_errors import refused

NAMES = list(yaml.safe_load(protocols.PROTOCOLS.read_text()))


@pytest.mark.parametrize("name", NAMES)
def test_every_protocol_is_valid_and_names_its_source(name):
    protocol = protocols.load(name)
    assert protocol.source
    assert protocol.needs_chat_template() == (protocol.chat_template and not prompts.load(protocol.prompt).raw)


def test_published_values():
    greedy, open_r1, sober = (protocols.load(name) for name in ("greedy-boxed", "open-r1", "sober"))
    assert (greedy.temperature, greedy.max_tokens, greedy.repeats_of("math500")) == (0, 3000, 1)
    assert (open_r1.temperature, open_r1.top_p, open_r1.max_tokens) == (0.6, 0.95, 32768)
    assert (open_r1.repeats_of("aime24"), open_r1.repeats_of("math500"), open_r1.repeats_of("gsm8k")) == (64, 4, 1)
    assert (sober.temperature, sober.top_p, sober.max_tokens) == (0.8, 0.9, 32768)
    assert greedy.extraction == "none" and protocols.load("greedy-boxed-long").max_tokens == 32768
    assert protocols.load("greedy-boxed", {"prompt": "plain"}).extraction == "answer-is"
    zoo = protocols.load("simplerl-zoo")
    assert (zoo.temperature, zoo.top_p, zoo.max_tokens, zoo.repeats_of("aime24")) == (1.0, 0.95, 16000, 32)


def test_overrides_replace_fields_and_nothing_else():
    overrides = protocols.parse_overrides(["temperature=0.5", "repeats={default: 2, aime24: 8}", "stop=['</answer>']"])
    changed, plain = protocols.load("greedy-boxed", overrides), protocols.load("greedy-boxed")
    assert (changed.temperature, changed.repeats_of("aime24"), changed.repeats_of("x")) == (0.5, 8, 2)
    assert changed.stop == ("</answer>",)
    assert (changed.max_tokens, changed.prompt) == (plain.max_tokens, plain.prompt)


@pytest.mark.parametrize(
    ("name", "settings", "code", "facts"),
    [
        ("greedy-boxd", [], "unknown-name", {"kind": "evaluation protocol"}),
        ("greedy-boxed", ["temprature=1"], "unknown-field", {"key": "temprature"}),
        ("greedy-boxed", ["prompt=boxd"], "unknown-name", {"kind": "prompt"}),
        ("greedy-boxed", ["temperature=hot"], "value-not-allowed", {"key": "temperature"}),
        ("greedy-boxed", ["repeats=0"], "value-not-allowed", {"key": "repeats"}),
        ("greedy-boxed", ["repeats={aime24: 4}"], "value-not-allowed", {"key": "repeats"}),
        ("greedy-boxed", ["repeats=true"], "value-not-allowed", {"key": "repeats"}),
        ("greedy-boxed", ["max_tokens=1.5"], "value-not-allowed", {"key": "max_tokens"}),
        ("greedy-boxed", ["chat_template=maybe"], "value-not-allowed", {"key": "chat_template"}),
        ("greedy-boxed", ["stop=x"], "value-not-allowed", {"key": "stop"}),
        ("greedy-boxed", ["extraction=last_number"], "value-not-allowed", {"key": "extraction"}),
        ("greedy-boxed", ["temperature"], "malformed-option", {"option": "--set"}),
        ("greedy-boxed", ["stop=[unclosed"], "malformed-option", {"option": "--set"}),
    ],
)
def test_mistakes_are_explained(name, settings, code, facts):
    with refused(code, **facts):
        protocols.load(name, protocols.parse_overrides(settings))


# Time limits would only measure how busy the machine is.
@given(st.dictionaries(st.sampled_from(list(protocols._FIELDS)), st.one_of(st.none(), st.integers(), st.text())))
def test_any_override_is_taken_or_refused_with_a_sentence(overrides):
    try:
        protocol = protocols.load("demo", overrides)
    except UserError:
        return
    for key, value in overrides.items():
        assert getattr(protocol, key) == value


def test_the_option_sets_the_rule():
    parser = argparse.ArgumentParser()
    protocols.add_extraction_option(parser, "none", "")
    assert parser.parse_args([]).extraction == "none"
    assert parser.parse_args(["--extraction", "answer-line"]).extraction == "answer-line"


def test_decoding_holds_what_decides_a_completion():
    demo = protocols.load("demo")
    assert demo.decoding() == protocols.load("demo", {"repeats": 9, "extraction": "last-number"}).decoding()
    for key, value in {"temperature": 0.1, "top_p": 0.5, "max_tokens": 9, "stop": ["x"], "prompt": "plain"}.items():
        assert protocols.load("demo", {key: value}).decoding() != demo.decoding()


@pytest.mark.slow
@pytest.mark.parametrize("module", [protocols, prompts])
def test_a_file_that_is_cut_off_is_refused_in_a_sentence_or_read(module, tmp_path, monkeypatch):
    where = "PROTOCOLS" if module is protocols else "FILE"
    whole, cut, refusals = getattr(module, where).read_bytes(), tmp_path / "cut.yaml", 0
    monkeypatch.setattr(module, where, cut)
    for length in range(0, len(whole), 23):
        cut.write_bytes(whole[:length])
        prompts.entries.cache_clear()
        prompts.library.cache_clear()
        try:
            for name in protocols.names() if module is protocols else prompts.library():
                module.load(name)
        except UserError:
            refusals += 1
    prompts.entries.cache_clear()
    prompts.library.cache_clear()
    assert refusals > 10
