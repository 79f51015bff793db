"""Templates: types are kept, undefined names are errors, and Python internals cannot be reached."""

import pytest

from hub.templating.templates import RenderError, check, render


def test_single_expression_keeps_its_type_unless_surrounded_by_text():
    assert render("{{ x }}", {"x": [1, 2]}) == [1, 2]
    assert render(" {{- x -}} ", {"x": {"a": 1}}) == {"a": 1}
    assert render("n={{ x }}", {"x": 3}) == "n=3"
    assert render("{{ x }}{{ x }}", {"x": 3}) == "33"
    assert render("{{ -x }}", {"x": 3}) == -3


def test_strings_are_rendered_at_any_depth_and_plain_text_is_unchanged():
    value = {"a": ["{{ x }}", "100% {# no comment"], "{{ key }}": 1}
    assert render(value, {"x": True}) == {"a": [True, "100% {# no comment"], "{{ key }}": 1}


def test_columns_may_have_any_name():
    assert render("{{ environment }} {{ args }}", {"environment": 1, "args": 2}) == "1 2"


@pytest.mark.parametrize("template", ["{{ missing }}", "a {{ missing }}", "{{ x.missing.more }}", "{{ x | fromjson }}"])
def test_render_error_contains_the_template(template):
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
def test_templates_cannot_reach_python_internals(template):
    with pytest.raises(RenderError):
        render(template, {"x": [1]})


def test_check_lists_every_template_that_does_not_compile():
    assert len(check({"a": "{{ x", "b": ["{% if %}", "{{ fine }}", "plain {#"]})) == 2


@pytest.mark.parametrize(
    ("template", "statement"),
    [
        ("{% include 'a' %}", "include"),
        ("{% import 'a' as b %}", "import"),
        ("{% from 'a' import b %}", "import"),
        ("{% extends 'a' %}", "extends"),
    ],
)
def test_statements_that_load_other_templates_are_reported_when_a_template_is_checked(template, statement):
    [problem] = check(template)
    assert problem.endswith(
        f"does not compile: `{statement}` loads another template, and there is none to load; write its text here"
    )


def test_filters_extract_answers_from_prose_and_json():
    assert render("{{ a | regex_search('#### (.*)', 1) }}", {"a": "so\n#### 42"}) == "42"
    assert render("{{ a | regex_search('#### (.*)', 1) }}", {"a": "no mark"}) == ""
    assert render("{{ a | regex_search('yes|no(.*)', 1) }}", {"a": "yes"}) == ""
    assert render("{{ a | fromjson }}", {"a": "[1]"}) == [1]
