"""Chat templates: what is in use gives what Jinja gives, and the rest is refused within bounds."""

from __future__ import annotations

import time

import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.rules import template as template_rules
from nacre.llm.template.chat import read_template

MESSAGES = [
    {"role": "system", "content": "  Be kind.\n"},
    {"role": "user", "content": "Hello <b>\"you\"</b> & 'me'"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi!"},
    {"role": "user", "content": "日本 🙂 {{ x }}"},
]
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}

TEMPLATES = [
    "",
    "plain\n",
    "a\n\n",
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m.content + eos_token }}{% endfor %}",
    (
        "{% for m in messages %}\n  {% if loop.first and m['role'] != 'system' %}\n S\n  {"
        "% endif %}\n{{ m.role }}\n{% endfor %}"
    ),
    (
        "{%- for m in messages -%}\n  {{- m.content | trim -}}\n  {%- if not loop.last %}"
        " , {% else %} . {% endif -%}\n{%- endfor -%}  end "
    ),
    (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set system = message"
        "s[0]['content'] | trim %}{% set messages = messages[1:] %}{% else %}{% set sys"
        "tem = '' %}{% endif %}{{ system }}|{{ messages | length }}"
    ),
    (
        "{% set ns = namespace(found=false, last=0) %}{% for m in messages[::-1] %}{% i"
        "f m.role == 'user' and not ns.found %}{% set ns.found = true %}{% set ns.last "
        "= loop.index0 %}{% endif %}{% endfor %}{{ ns.found }} {{ ns.last }}"
    ),
    "{% for m in messages %}{% set x = m.role %}{% endfor %}{{ x is defined }} {{ x }}",
    (
        "{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }} "
        "{{ m.content }};{% else %}none{% endfor %}"
    ),
    "{% for m in [] %}x{% else %}none{% endfor %}",
    (
        "{{ tools is defined }} {{ tools is none }} {{ (tools | default('no')) }} {{ 'a"
        "' if tools else 'b' }} {{ 'x' if false }}|"
    ),
    "{{ messages | tojson }}\n{{ messages[0] | tojson(indent=2) }}",
    "{{ {'a': [1, 2.5, true, none], 'b': 'é'} | tojson }} {{ [1, 'a', none] }} {{ {'k': 1} }}",
    (
        "{{ 'a' ~ 1 ~ none }} {{ 1 + 2 * 3 - 4 // 3 % 2 }} {{ 7 / 2 }} {{ -3 }} {{ - 2 "
        "+ 1 }} {{ (1, 2)[1] }}"
    ),
    (
        "{{ 1 < 2 < 3 }} {{ 'a' in 'abc' }} {{ 'role' in messages[0] }} {{ 'x' not in ["
        "1] }} {{ not 1 == 2 and true or false }}"
    ),
    (
        "{{ 'abc'.upper() }} {{ ' a '.strip() }} {{ 'a,b'.split(',')[-1] }} {{ 'abc'.st"
        "artswith('a') }} {{ 'xaax'.replace('a', 'b') }} {{ 'a-b'.split('-') }}"
    ),
    (
        "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}{% for k"
        " in {'a': 1} %}{{ k }}{% endfor %}"
    ),
    (
        "{% for m in messages %}{% if loop.index0 == 2 %}{% break %}{% endif %}{% if m."
        "role == 'user' %}{% continue %}{% endif %}{{ m.role }}{% endfor %}"
    ),
    "{# a comment {{ x }} #}\n  {#- another -#}  text",
    "  {%+ if true %}kept{% endif +%}\n  after",
    "{% set x %}block {{ messages[1].role }}{% endset %}[{{ x }}]",
    (
        "{% if messages[1]['content'] is string and messages is sequence and messages i"
        "s not mapping %}yes{% endif %}"
    ),
    (
        "{% if a %}1{% elif messages | length > 3 %}2{% else %}3{% endif %}{% if messag"
        "es[7] is undefined %}u{% endif %}"
    ),
    (
        "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ (mess"
        "ages | last).role }}{{ messages | first | length }}"
    ),
    "{{ 'a' 'b' }} {{ 'it\\'s' }} {{ \"\\n\\t\\\\\" }} {{ '\\u00e9' }}",
    (
        "{{ range(3) | list }} {{ range(1, 7, 2) | join('-') }} {{ ['a', 1] | join }} {"
        "{ 'abc'[1:] }} {{ 'abc'[-1] }} {{ 'abc'[::-1] }}"
    ),
    (
        "{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined else "
        "'-' }}>{{ loop.nextitem.role if not loop.last }} {% endfor %}"
    ),
    "{{ messages[2].content.split('</think>')[-1].lstrip('\\n') }}",
    "{{ 1.5 }} {{ 'x' * 0 if false else 'y' }} {{ true and 'a' }} {{ none or 'b' }}",
    "a{{ '\n' }}\n{% if true %}\n\nb{% endif %}\n\n{% if true %}c{% endif %}\nd",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_write_what_jinja_writes(template: str) -> None:
    sandbox = pytest.importorskip("jinja2.sandbox")
    import json

    world = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    world.filters["tojson"] = lambda v, indent=None: json.dumps(
        v, ensure_ascii=False, indent=indent
    )
    given = {"messages": MESSAGES, "add_generation_prompt": True, **VARIABLES}
    expected = world.from_string(template).render(**given)
    assert read_template(template, "t", VARIABLES).prompt(MESSAGES) == expected


def refusal(template: str) -> tuple[str, str]:
    with pytest.raises(InputError) as refused:
        read_template(template, "t", VARIABLES).prompt(MESSAGES)
    (finding,) = refused.value.diagnostics
    return finding.code, finding.message


def doubled(first: str, next_: str) -> str:
    """A value that is made of itself again and again."""
    loop = f"{{% for i in range(60) %}}{{% set ns.x = {next_} %}}{{% endfor %}}"
    return f"{{% set ns = namespace(x={first}) %}}{loop}"


REFUSED = {
    "LLM20": [
        "{% macro f() %}{% endmacro %}",
        "{% import 'x' as y %}",
        "{% include 'x' %}",
        "{{ x",
        "{% if x",
        "{% for m in messages %}",
        "{% endfor %}",
        "{% if true %}{% endfor %}",
        "{{ 1 + }}",
        "{{ }}",
        "{{ x | evil }}",
        "{{ evil() }}",
        "{{ x is evil }}",
        "{{ ''.__class__ }}{{ a.b()() }}",
        "{# x",
        "{{ a[] }}",
        "{{ a[1:2:3:4] }}",
        "{% set = 1 %}",
        "{{ 'a }}",
        "{{ (1 }}",
        "{{ 2 ** 8 }}",
        "{% else %}",
        "{% call f() %}{% endcall %}",
        "{{ lambda: 1 }}",
        "{{ $ }}",
    ],
    "LLM21": [
        "{{ raise_exception('no system prompt') }}",
        "{{ messages[9].role }}",
        "{{ 1 / 0 }}",
        "{{ 'a' + 1 }}",
        "{{ 'a' < 1 }}",
        "{{ 'a' | length + 'b' }}",
        "{% for x in 5 %}{% endfor %}",
        "{{ 'a'.format(1) }}",
        "{{ ''.__class__() }}",
        "{{ messages.append(1) }}",
        "{{ 'a'.strip(1) }}",
        "{{ range() }}",
        "{{ range(1, 2, 0) }}",
        "{{ [1][::0] }}",
        "{% set x = 1 %}{% set x.y = 2 %}",
        "{{ 'a'.upper(1) }}",
        "{{ {[]: 1} }}",
        "{% for a, b in [1] %}{% endfor %}",
        "{{ strftime_now('%Q') }}",
        "{{ 'x'.split('') }}",
        "{{ 'a' * 3 }}",
    ],
    "LLM22": [
        "{{ range(10001) }}",
        "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}",
        doubled("'abc'", "ns.x + ns.x"),
        doubled("'abc'", "ns.x ~ ns.x"),
        doubled("[1]", "ns.x + ns.x"),
        doubled("[1]", "[ns.x, ns.x]") + "{{ ns.x }}",
        doubled("[1]", "[ns.x, ns.x]") + "{{ ns.x | tojson }}",
        doubled("[1]", "[ns.x, ns.x]") + "{{ ns.x == [ns.x] }}",
        doubled("'abc'", "ns.x.replace('a', ns.x)"),
        doubled("3", "ns.x * ns.x"),
        doubled("'aa'", "[ns.x, ns.x] | join(ns.x)"),
        "{{ " + "(" * 100 + "1" + ")" * 100 + " }}",
        "{{ " + "[" * 1000 + "]" * 1000 + " }}",
        "{% if true %}" * 100 + "{% endif %}" * 100,
        "{{ 1" + " + 1" * 5000 + " }}",
        "{{ x" + ".a" * 1000 + " }}",
        "{{ " + "1" * 30 + " }}",
        "x" * ((1 << 17) + 1),
    ],
}


@pytest.mark.parametrize(
    ("code", "number"), [(code, n) for code, cases in REFUSED.items() for n in range(len(cases))]
)
def test_what_is_beyond_the_subset_or_its_bounds_is_refused(code: str, number: int) -> None:
    begun = time.process_time()
    found, message = refusal(REFUSED[code][number])
    assert found == code, message
    assert time.process_time() - begun < 2


def test_every_code_is_shown() -> None:
    assert {*REFUSED} == {code for code in vars(template_rules) if code.startswith("LLM")}


def test_a_refusal_stands_at_its_line() -> None:
    with pytest.raises(InputError) as refused:
        read_template("a\nb\n{{ x.y.z }}\n", "t").prompt(MESSAGES)
    (finding,) = refused.value.diagnostics
    assert (finding.location.line, finding.message) == (3, "something undefined has no item 'y'")
