"""Every page has a strict policy that its own style sheet and script satisfy; with a browser and without one."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_runs import make_run
from synthetic_results import NAMES, RUNS, write_run
from test_sample_browser import rows

from analysis.load_results import load_results
from analysis.measures import reasoning_patterns
from analysis.pages import content_policy
from analysis.report import sample_browser
from analysis.report.build import report
from tests import needs
from tests.forked_command import run_module
from tests.waiting import WORKFLOW_LIMIT

BAD = ' "></style></script><script>document.title = "taken"</script><img src=x onerror="document.title = `taken`">'


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One page of each kind: report, tables, sample browser, gate."""
    folder = tmp_path_factory.mktemp("pages")
    for name, ceiling in RUNS.items():
        write_run(folder / "demo", name, ceiling, steps=(0, 20), problems=6, repeats=2)
    runs = [load_results(folder / "demo", name) for name in NAMES]
    report(runs, folder / "report", BAD, "demo")
    sample_browser.write([make_run(rows()[:20])], reasoning_patterns.load_lists(), BAD, folder / "browser")
    sides = [f"--{side}={folder}/demo/runs/{NAMES[0]}/graded/step-{step}" for side, step in
             (("checkpoint", 20), ("baseline", 0))]  # fmt: skip
    options = [*sides, f"--checkpoint-name={BAD}", f"--output={folder}/gate"]
    run_module("analysis.compare_checkpoints", "compare", *options)
    files = sorted(folder.rglob("*.html"))
    assert {file.parent.name for file in files} == {"report", "tables", "samples", "browser", "gate"}
    return files


class Active(HTMLParser):
    """What a page has of scripts, styles and handlers, and its policy with the number of elements before it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.inline: dict[str, list[str]] = {"style": [], "script": []}
        self.wrong: list[str] = []
        self.policies: list[str] = []
        self.seen: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if attributes.get("http-equiv", "").lower() == "content-security-policy":
            assert self.seen in (["html", "head"], ["html", "head", "meta"]), "the policy comes first"
            self.policies.append(attributes["content"])
        self.seen.append(tag)
        if tag in self.inline:
            self.inline[tag].append("")
            self.wrong += [f"<{tag} {name}>" for name in attributes if name in ("src", "nonce")]
        self.wrong += [f"{tag} {name}" for name in attributes if name.startswith("on") or name == "style"]
        self.wrong += [f"{tag} {name}={value}" for name, value in attributes.items() if "javascript:" in value.lower()]
        self.wrong += (
            [tag] if tag in ("iframe", "object", "embed", "base", "link", "form") and "id" not in attributes else []
        )

    def handle_data(self, data: str) -> None:
        if self.cdata_elem in self.inline:
            self.inline[self.cdata_elem][-1] += data


def check(text: str) -> Active:
    """Assert that a page has one strict policy, and nothing inline that it does not name."""
    page = Active(text)
    (policy,) = page.policies
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and "unsafe" not in policy and "*" not in policy
    assert rules.pop("connect-src", "'self'") == "'self'"  # the page of runs that go on asks its own server
    assert set(rules) <= {"default-src", "base-uri", "form-action", "img-src", "style-src", "script-src", "worker-src"}
    assert rules.get("worker-src") == ("blob:" if "strict-dynamic" in policy else None)
    for tag, texts in page.inline.items():
        assert [content_policy.source(text) in rules.get(f"{tag}-src", "").split() for text in texts] == [True] * len(
            texts
        )
    assert page.wrong == []
    return page


@pytest.mark.slow
def test_every_page_has_a_strict_policy_and_keeps_it(pages: list[Path]) -> None:
    for file in pages:
        page = check(file.read_text(encoding="utf-8"))
        assert len(page.inline["style"]) == 1 and len(page.inline["script"]) == (file.parent.name != "tables")
        assert ("strict-dynamic" in page.policies[0]) == (file.parent.name in ("samples", "browser"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "added",
    [
        "<style>p {color: red}</style>",
        "<script>1</script>",
        "<p onclick='x'>",
        "<p style='color: red'>",
        "<a href='javascript:x'>",
    ],
)
def test_the_check_finds_what_a_policy_would_stop(pages: list[Path], added: str) -> None:
    text = pages[0].read_text(encoding="utf-8")
    with pytest.raises(AssertionError):
        check(text.replace("</body>", f"{added}</body>"))
    with pytest.raises((AssertionError, ValueError)):
        check(re.sub("<meta http-equiv[^>]*>", "", text))


def test_figures_keep_their_looks_without_styles() -> None:
    svg = (
        '<svg><defs>\n  <style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>\n </defs>'
        '<path d="M 0 0" style="fill: none; stroke: #b0b0b0"/><text style="font-family: \'DejaVu Sans\', serif">'
        'style="fill: red"</text></svg>'
    )
    assert content_policy.without_styles(svg) == (
        '<svg stroke-linejoin="round" stroke-linecap="butt"><path d="M 0 0" fill="none" stroke="#b0b0b0"/>'
        '<text font-family="\'DejaVu Sans\', serif">style="fill: red"</text></svg>'
    )
    with pytest.raises(ValueError, match="style sheet"):
        content_policy.without_styles("<svg><style>p{}</style></svg>")


def console(page: Path, profile: Path) -> tuple[str, str]:
    """The document as Chromium has it, and what Chromium said on its console."""
    command = [
        needs.CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        f"--user-data-dir={profile}", "--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom",
        f"file://{page}",
    ]  # fmt: skip
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=WORKFLOW_LIMIT, check=False
    )
    return done.stdout, "\n".join(line for line in done.stderr.split("\n") if "CONSOLE" in line)


@pytest.mark.slow
@needs.chromium
def test_chromium_finds_no_violation_and_the_pages_work(pages: list[Path], tmp_path: Path) -> None:
    kinds = {file.parent.name: file for file in pages}  # one of the tables is enough
    for name, file in kinds.items():
        document, said = console(file, tmp_path / name)
        assert said == "", said
        assert "<title>taken</title>" not in document and "</html>" in document
        assert ('data-ready="yes"' in document) == (name in ("samples", "browser"))
    added = kinds["gate"].with_name("added.html")
    text = kinds["gate"].read_text(encoding="utf-8")
    added.write_text(
        text.replace("</body>", "<p style='color: red'></p><script>document.title = 'taken'</script></body>")
    )
    document, said = console(added, tmp_path / "added")
    assert said.count("Content Security Policy") >= 2 and "<title>taken</title>" not in document, said
