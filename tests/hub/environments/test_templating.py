"""Templates: types kept, undefined names refused, nothing reached that a bundle should not reach."""

import itertools

import pytest

from hub.protocols.templating import MAX_RENDERED, RenderError, check, render


def test_a_lone_expression_keeps_its_type_and_text_around_it_makes_it_text():
    assert render("{{ x }}", {"x": [1, 2]}) == [1, 2]
    assert render(" {{- x -}} ", {"x": {"a": 1}}) == {"a": 1}
    assert render("n={{ x }}", {"x": 3}) == "n=3"
    assert render("{{ x }}{{ x }}", {"x": 3}) == "33"
    assert render("{{ -x }}", {"x": 3}) == -3


def test_strings_are_rendered_at_any_depth_and_text_without_braces_is_left_alone():
    value = {"a": ["{{ x }}", "100% {# no comment"], "{{ key }}": 1}
    assert render(value, {"x": True}) == {"a": [True, "100% {# no comment"], "{{ key }}": 1}


def test_columns_may_have_any_name():
    assert render("{{ environment }} {{ args }}", {"environment": 1, "args": 2}) == "1 2"


@pytest.mark.parametrize("template", ["{{ missing }}", "a {{ missing }}", "{{ x.missing.more }}", "{{ x | fromjson }}"])
def test_what_does_not_render_names_the_template(template):
    with pytest.raises(RenderError, match="does not render"):
        render(template, {"x": "text"})


@pytest.mark.parametrize(
    "template",
    [
        "{{ x.__class__.__mro__ }}",
        "a {{ ''.__class__.__subclasses__() }}",
        "{{ x.append(1) }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "a {{ '{0.__class__}'.format(x) }}",
    ],
)
def test_the_way_out_of_a_template_is_closed(template):
    with pytest.raises(RenderError):
        render(template, {"x": [1]})


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}xxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
        "{{ 'x' * 10 ** 9 }}",
        "{{ [0] * 10 ** 9 }}",
        "{{ 9 ** (9 ** 9) }}",
        "a {{ '%999999999d' % 1 }}",
        "a {{ 'x' | center(999999999) }}",
        "a {{ 'x'.ljust(999999999) }}",
        "a {{ '{:>999999999}'.format(1) }}",
        "a {{ '%999999999s' | format(1) }}",
        "{{ (x | replace('', x)) | length }}",
        "{% set a = 'x' %}{% for i in range(99) %}{% set a = a ~ a %}{% endfor %}",
        "{% macro m(t) %}{{ t }}{{ t }}{% endmacro %}{{ m(m(m('x'))) }}",
        "{% for a in x %}{% for b in x %}{% for c in x %}{% endfor %}{% endfor %}{% endfor %}",
    ],
)
def test_a_template_that_would_fill_the_memory_is_stopped(template):
    with pytest.raises(RenderError):
        render(template, {"x": "x" * 10_000})
    assert MAX_RENDERED < 10**8


def test_check_lists_every_template_that_does_not_compile():
    assert len(check({"a": "{{ x", "b": ["{% if %}", "{{ fine }}", "plain {#"]})) == 2


def test_filters_dig_answers_out_of_prose_and_json():
    assert render("{{ a | regex_search('#### (.*)', 1) }}", {"a": "so\n#### 42"}) == "42"
    assert render("{{ a | fromjson }}", {"a": "[1]"}) == [1]


# ---- searches --------------------------------------------------------------------------------------------------------


def test_a_pattern_that_explodes_is_ended_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.protocols.template_guard.SEARCH_S", 0.05)
    with pytest.raises(RenderError, match=r"takes more than 0\.05 s; make it simpler"):
        render("{{ x | regex_search('(a|aa)+$') }}", {"x": "a" * 60 + "b"})
    assert render("{{ x | regex_search('a+') }}", {"x": "baab"}) == "aa"


def test_the_searches_of_one_rendering_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    given = []

    def search(pattern: str, text: str, *, timeout: float, concurrent: bool) -> None:
        given.append(timeout)

    monkeypatch.setattr("hub.protocols.template_guard.time.thread_time", lambda: next(ticks) * 0.25)
    monkeypatch.setattr("hub.protocols.template_guard.regex.search", search)
    for _ in range(2):
        render("{% for i in x %}{{ i | regex_search('a') }}{% endfor %}", {"x": "abc"})
    assert given == [1.0, 0.75, 0.5] * 2
