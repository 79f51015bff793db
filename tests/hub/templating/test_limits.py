"""Hostile templates raise an error, within limited memory and processor time of the renderer's process."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import override_settings

from hub.templating import renderers, worker
from hub.templating.renderers import Renderers, TemplatesUnavailable
from hub.templating.templates import RenderError, check, render, render_many
from tests.sampling import sampled

ROOT = Path(__file__).resolve().parents[3]
X = "x" * 10_000

HOSTILE = {
    "a text multiplied": "{{ 'x' * 10 ** 9 }}",
    "a list multiplied": "{{ [0] * 10 ** 9 }}",
    "a text multiplied in text": "a {{ x * 10 ** 6 }}",
    "a power": "{{ 9 ** (9 ** 9) }}",
    "a power of powers": "{% set n = 9 ** 9 ** 3 %}{{ n ** n }}",
    "shifted by multiplication": "{% set ns = namespace(n=9) %}{% for i in range(99) %}{% set ns.n = ns.n * ns.n %}"
    "{% endfor %}{{ ns.n }}",
    "set doubles": "{% set ns = namespace(a='xx') %}{% for i in range(99) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}"
    "{{ ns.a }}",
    "with doubles": "{% with a = x ~ x %}{% with b = a ~ a ~ a ~ a ~ a ~ a ~ a ~ a %}"
    "{% with c = b ~ b ~ b ~ b ~ b ~ b ~ b ~ b %}{% with d = c ~ c ~ c ~ c ~ c ~ c ~ c ~ c %}"
    "{{ (d ~ d ~ d ~ d ~ d ~ d ~ d ~ d) }}{% endwith %}{% endwith %}{% endwith %}{% endwith %}",
    "with multiplies": "{% with a = x * 999 %}{% with b = a * 999 %}{{ b * 999 }}{% endwith %}{% endwith %}",
    "with lists": "{% with a = [x, x, x, x, x, x, x, x] %}{% with b = [a, a, a, a, a, a, a, a] %}"
    "{% with c = [b, b, b, b, b, b, b, b] %}{% with d = [c, c, c, c, c, c, c, c] %}{{ d }}{% endwith %}"
    "{% endwith %}{% endwith %}{% endwith %}",
    "lists in lists": "{{ [[[x, x, x, x], [x, x, x, x]] * 99] * 99 }}",
    "lists of lists as a value": "{{ [[[[x] * 100] * 100] * 100] }}",
    "a dict of the same": "{{ {'a': [x] * 999, 'b': [x] * 999} }}",
    "tuples": "a {{ ((x,) * 999, (x,) * 999, (x,) * 999) }}",
    "printf's width": "a {{ '%999999999d' % 1 }}",
    "printf's width from its arguments": "a {{ '%*d' % (999999999, 1) }}",
    "printf's precision": "a {{ '%.999999999f' % 1 }}",
    "the filter format": "a {{ '%999999999s' | format(1) }}",
    "a width field": "a {{ '{:>999999999}'.format(1) }}",
    "a width field of its own": "a {{ '{:>{}}'.format(1, 999999999) }}",
    "many width fields": "{{ ('{:>9999}' * 9999).format(*range(9999)) }}",
    "format_map": "a {{ '{a:>999999999}'.format_map({'a': 1}) }}",
    "center": "a {{ 'x' | center(999999999) }}",
    "center as a method": "a {{ 'x'.center(999999999) }}",
    "ljust": "a {{ 'x'.ljust(999999999) }}",
    "rjust": "a {{ 'x'.rjust(999999999) }}",
    "zfill": "a {{ 'x'.zfill(999999999) }}",
    "indent": "a {{ (x.replace('x', 'x\n')) | indent(9999999) }}",
    "indent by a text": "a {{ (x.replace('x', 'x\n')) | indent(x) }}",
    "expandtabs": "a {{ '\t'.expandtabs(999999999) }}",
    "expandtabs of many": "a {{ ('\t' * 9999).expandtabs(9999) }}",
    "tojson with indent": "a {{ range(9999) | list | tojson(indent=9999) }}",
    "tojson of tojson": "{{ x | list | tojson" + " | tojson" * 30 + " }}",
    "translate": "a {{ x.translate({120: x * 99}) }}",
    "replace": "a {{ x | replace('', x) }}",
    "replace twice": "a {{ x.replace('x', x).replace('x', x) }}",
    "a join": "a {{ x | join(x) }}",
    "a join as a method": "a {{ x.join(x) }}",
    "a join of joins": "{{ ([x] * 999) | join(([x] * 99) | join) }}",
    "a chain": "a {{ " + " ~ ".join(["x"] * 600) + " }}",
    "a chain of a chain": "{% with a = "
    + " ~ ".join(["x"] * 99)
    + " %}{{ "
    + " ~ ".join(["a"] * 999)
    + " }}{% endwith %}",
    "filter blocks": "{% filter replace('x', x) %}{% filter replace('x', x) %}{{ x }}{% endfilter %}{% endfilter %}",
    "a filter block that pads": "{% filter center(999999999) %}x{% endfilter %}",
    "a set block": "{% set a %}{{ x * 9999 }}{% endset %}{{ a * 9999 }}",
    "macros": "{% macro m(t) %}{{ t }}{{ t }}{{ t }}{{ t }}{{ t }}{{ t }}{{ t }}{{ t }}{% endmacro %}"
    "{{ m(m(m(m(m(m(x)))))) }}",
    "a macro that calls itself": "{% macro m(t) %}{{ m(t ~ t) }}{% endmacro %}{{ m('x') }}",
    "batch": "a {{ 'x' | batch(99999999, x) | list }}",
    "slice": "{{ x | slice(99999999) | list }}",
    "wordwrap": "a {{ x | wordwrap(1, wrapstring=x) }}",
    "a sum of lists": "{{ ([[0] * 99999] * 99999) | sum(start=[]) | length }}",
    "urlize": "{{ ('http://x.y ' * 999999) | urlize }}",
    "an empty loop": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "an empty loop over text": "{% for a in x %}{% for b in x %}{% for c in x %}{% endfor %}{% endfor %}{% endfor %}",
    "a range that is too large": "{% for a in range(10 ** 18) %}{% endfor %}",
    "a loop that writes": "{% for a in range(99999) %}{% for b in range(99999) %}xxxxxxxxxxxxxxxxxxxx{% endfor %}"
    "{% endfor %}",
    "a cycler in a loop": "{% set c = cycler(1, 2) %}{% for a in range(99999) %}{% for b in range(99999) %}"
    "{% set d = c.next() %}{% endfor %}{% endfor %}",
    "a recursive loop": "{% for a in [[1], [2]] recursive %}{{ loop([[1], [2]]) }}{% endfor %}",
    "a pattern that explodes": "{{ ('a' * 60 ~ 'b') | regex_search('(a|aa)+$') }}",
    "a sort of everything": "{{ (range(99999) | list * 99) | sort | length }}",
    "a unique of everything": "{{ (range(99999) | map('string') | list * 999) | unique | list | length }}",
    "pprint": "{{ ([[x] * 999] * 999) | pprint }}",
    "xmlattr": "{{ {'a': x * 99999} | xmlattr }}",
    "a deep nesting": "{{ " + "(" * 3000 + "x" + ")" * 3000 + " }}",
    "deep lists": "{{ " + "[" * 500 + "x" + "]" * 500 + " | tojson }}" + "{{ x * 10 ** 9 }}",
    "a number of thousands of digits": "{{ " + "9" * 5000 + " }}",
    "a long template": "x" * 300_000 + "{{ x }}",
    "repeated look-ups": "{{ x }}" * 10_000,
    "repeated look-ups in loops": "{% for a in x %}{% for b in x %}{{ x }}{% endfor %}{% endfor %}",
}


@sampled("name", HOSTILE, each=6)
def test_hostile_template_raises_an_error_with_bounded_memory(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RenderError, match=r"^template .*(does not render|does not compile|at most)"):
        render(HOSTILE[name], {"x": X})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024  # KiB, in this process


def test_total_size_of_rendered_values_is_limited() -> None:
    with pytest.raises(RenderError, match="with the others beside it"):
        render({str(i): "{{ x }}" for i in range(100)}, {"x": ["y" * 1_000_000]})


def test_constants_are_not_computed_when_a_template_is_checked() -> None:
    assert check(["{{ 'x' * 10 ** 10 }}", "{{ 9 ** (9 ** 9) }}", "{{ 'x' | center(10 ** 10) }}"]) == []


def test_check_suggests_filters_and_tests_for_unknown_ones() -> None:
    assert "No filter named 'uppercase'; did you mean 'upper'?" in check("{{ x | uppercase }}")[0]
    assert "No test named 'zzzz'; known are " in check("{{ x is zzzz }}")[0]


def test_rendering_continues_after_a_case_kills_its_renderer() -> None:
    """A regular expression of C code that is not interrupted, or a stack that overflows, ends the process."""
    jobs = [("{{ ('x' * n) | length }}", {"n": n}) for n in (1, 10**10, 3)]
    first, second, third = render_many(jobs)
    assert (first, third) == (1, 3)
    assert isinstance(second, RenderError) and "512 MiB of memory" in str(second)


def test_statements_and_filters_of_jinja2_render() -> None:
    assert render("{% set a = x | upper %}{% for i in a %}{{ loop.index }}{{ i }}{% endfor %}", {"x": "ab"}) == "1A2B"
    assert render("{{ x | map('upper') }}", {"x": ["a"]}) == ["A"]
    assert render("{{ x.values() }}", {"x": {"a": 1}}) == [1]
    assert render("{{ x | tojson }}", {"x": {"b": "ü", "a": None}}) == '{"a": null, "b": "ü"}'
    assert render(["{{ x ~ '\ud800' }}", "{{ x }}"], {"x": "é"}) == ["é\ud800", "é"]


@pytest.mark.parametrize(
    "template",
    [
        "{{ x }}",
        "{{ x.a }} {{ x['a'] }} {{ x.l[0] }} {{ x.l[-1] }}",
        "{% for i in x.l %}{{ loop.index }}/{{ loop.length }}{{ i }}{% if not loop.last %}, {% endif %}{% endfor %}",
        "{% for i in x.e %}{{ i }}{% else %}none{% endfor %}",
        "{% for i in x.l %}{% for j in x.l %}{{ i }}{{ j }}{{ loop.index0 }}{% endfor %}{{ loop.index0 }}{% endfor %}",
        "{{ 'yes' if x.a == 1 and x.l else 'no' }}",
        "{% if x.n is none %}a{% elif y is defined %}b{% else %}c{% endif %}",
        "{{ 0 < x.a <= 2 }} {{ 'k' in x }} {{ -x.a }} {{ [1, 'a'] }} {{ {'A': 'B'}['A'] }} {{ x }}",
        "{{ y is defined or x.a }} {{ x.t }} {{ x.missing is defined }}",
        "\n{{- x.a -}}\n{# a comment #} 100%\n",
        "{% raw %}{{ x }}{% endraw %}{{ x.t }}\n",
    ],
)
def test_interpreted_templates_render_as_jinja2_does(template: str) -> None:
    from hub.templating.environment import CompiledTemplate, TemplateEnvironment
    from hub.templating.templates import _parsed

    variables = {"x": {"a": 1, "l": ["p", "q"], "e": [], "n": None, "t": True}}
    assert _parsed(template).plain is not None
    assert render(template, variables) == CompiledTemplate(TemplateEnvironment(), template).render(variables)


# ---- containment -----------------------------------------------------------------------------------------------------

_ESCAPED = """
import os, socket, sys
sys.path.insert(0, {root!r})
from hub.templating import worker
worker.preload()
print(worker.contain())
def attempt(name, act):
    try:
        act()
    except OSError:
        return
    print("could", name)
attempt("read", lambda: open("/etc/passwd"))
attempt("write", lambda: open("/tmp/renderer", "w"))
attempt("list", lambda: os.listdir("/"))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", 6379), 1))
attempt("fork", lambda: os.fork() or os._exit(0))
attempt("exec", lambda: os.execv("/bin/true", ["true"]))
attempt("signal", lambda: os.kill(os.getppid(), 0))
attempt("truncate", lambda: os.truncate({target!r}, 0))
print(os.geteuid() != 0)
"""


def test_code_escaped_from_jinja2_cannot_reach_files_network_or_processes(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("kept")
    code = _ESCAPED.format(root=str(ROOT), target=str(target))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.stdout.split("\n")[:2] == ["B", "True"], ran
    assert target.read_text() == "kept"


def test_renderers_have_no_environment_variables_of_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_KEY", "s3cret")
    pool = Renderers()
    try:
        assert pool.render([(("{{ x | upper }}",), {"x": "a"})]) == [["A"]]
        assert pool._process is not None
        assert b"s3cret" not in Path(f"/proc/{pool._process.pid}/environ").read_bytes()
    finally:
        pool.close()


# ---- unavailable -----------------------------------------------------------------------------------------------------


def test_rendering_is_unavailable_if_renderers_cannot_be_contained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    weak = tmp_path / "weak.py"
    source = Path(worker.__file__).read_text()
    weak.write_text(
        source.replace("_ROOT = ", f"_ROOT = {str(ROOT)!r} or ").replace("tier = contain", "tier = 'C'; contain")
    )
    monkeypatch.setattr(worker, "__file__", str(weak))
    pool = Renderers()
    try:
        with pytest.raises(TemplatesUnavailable, match=r"no Landlock.*LLMEVAL_SANDBOX_WEAK_ISOLATION=1"):
            pool.render([(("{{ x | upper }}",), {"x": "a"})])
        with override_settings(SANDBOX_WEAK_ISOLATION_FOR_LIVE_MODELS=True):
            assert pool.render([(("{{ x | upper }}",), {"x": "a"})]) == [["A"]]
    finally:
        pool.close()


def test_renderer_that_does_not_start_is_unavailable_and_not_a_bundle_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(renderers.sys, "executable", "/nowhere/python")
    pool = Renderers()
    with pytest.raises(TemplatesUnavailable, match="does not start"):
        pool.render([(("{{ x | upper }}",), {"x": "a"})])
    pool.close()
