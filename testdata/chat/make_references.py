#!/usr/bin/env python3
"""Writes references.json: chat templates and what real Jinja2 makes of them.

The environment is the one transformers builds for chat templates (ImmutableSandboxedEnvironment,
trim_blocks, lstrip_blocks, loop controls, its tojson). Written with Jinja2 3.1.6.

usage: make_references.py [--model NAME=FILE.gguf ...]
A model's template is read from its file and not stored; only its SHA-256 and the rendered texts
are. Without --model the model references already in references.json are kept.
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import struct

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

OUTPUT = pathlib.Path(__file__).with_name("references.json")
NOW = datetime.datetime(2024, 7, 26, 15, 4, 9, tzinfo=datetime.timezone.utc)

USER = [{"role": "user", "content": "Hi"}]
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 2 < 3?"},
    {"role": "assistant", "content": "  True.\n"},
    {"role": "user", "content": "Äpfel & 漢字 \"x\"\t'y' \\ 🦙"},
]
TWO = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]

# BC-09: block tags on lines of their own, indented, no minus signs.
WHITESPACE = {
    "for_if_own_lines": """{% for message in messages %}
    {% if message.role == 'user' %}
[{{ message.role }}]
    {% endif %}
{% endfor %}
""",
    "for_if_else": """{% for m in messages %}
  {% if m.role == 'user' %}
    [{{ m.role }}]
  {% else %}
    ({{ m.role }})
  {% endif %}
{% endfor %}
end""",
    "inline_blocks": "{% for m in messages %}  {% if true %} [{{ m.role }}] {% endif %}  {% endfor %}\n\n",
    "tabs_before_block": "\t{% for m in messages %}\n\t\t[{{ m.role }}]\n\t{% endfor %}\n\tlast\n",
    "set_lines": "  {% set a = 1 %}\n  {% set b = 2 %}\n[{{ a + b }}]\n",
    "expression_keeps_line": "  {{ messages[0].role }}\n  {{ messages[0].content }}\n",
    "comment_lines": "  {# a comment #}\nx\n  {# two\nlines #}\ny{# inline #} z\n",
    "blank_line_after_block": "{% if true %}\n\n[a]\n\n{% endif %}\n\nb\n",
    "minus_signs": "a  {%- if true -%}  b  {%- endif %}\n  c {{- ' d ' -}}  e\n",
    "plus_signs": "a\n    {%+ if true %}b{% endif +%}\nc",
    "carriage_returns": "{% if true %}\r\n  [a]\r\n{% endif %}\r\nb",
    "raw_block": "  {% raw %}\n  {{ not }} {% this %}\n  {% endraw %}\nx",
}

PYTHON = {
    "strip_upper_lower": "{% for m in messages %}<{{ m.content.strip() }}|{{ m.content|trim|upper }}|"
                         "{{ m['role'].lower() }}|{{ m.role.capitalize() }}|{{ m.role.title() }}>{% endfor %}",
    "split_and_index": "{{ messages[1].content.split(' ')[-1] }}|{{ 'a,b,,c'.split(',') }}|"
                       "{{ '  a b  c '.split() }}|{{ 'a b c d'.split(' ', 2) }}|{{ 'a b c d'.rsplit(' ', 1) }}|"
                       "{{ ' a  b c '.split(None, 1) }}|{{ 'x</think>y'.split('</think>')[0] }}",
    "startswith_endswith_in": "{% for m in messages %}{% if m.content.startswith('Be') %}S{% endif %}"
                              "{% if m.content.endswith('?') %}E{% endif %}{% if '&' in m.content %}A{% endif %}"
                              "{% if 'zzz' not in m.content %}N{% endif %}{% endfor %}",
    "find_count_replace": "{{ 'äbcäb'.find('c') }} {{ 'äbcäb'.rfind('b') }} {{ 'äbc'.find('q') }} "
                          "{{ 'banana'.count('an') }} {{ 'abc'.count('') }} {{ 'banana'.replace('an', 'x') }} "
                          "{{ 'banana'.replace('an', 'x', 1) }} {{ 'abc'.replace('', '-') }} "
                          "{{ 'banana'|replace('a', 'o') }} {{ 'banana'|replace('a', 'o', 2) }}",
    "strip_characters": "{{ '\\n\\n x \\n'.strip('\\n') }}|{{ 'xxayx'.lstrip('x') }}|{{ 'xxayx'.rstrip('xy') }}|"
                        "{{ 'prefix.x'.removeprefix('prefix.') }}|{{ 'a.txt'.removesuffix('.txt') }}|"
                        "{{ 'a=b=c'.partition('=')[2] }}",
    "splitlines": "{{ 'a\\nb\\r\\nc\\n'.splitlines() }}{{ 'a\\nb\\r\\nc'.splitlines(true) }}",
    "join": "{{ ', '.join(['a', 'b']) }} {{ ['a', 'b', 1]|join('-') }} {{ messages|map(attribute='role')|join(' ') }} "
            "{{ messages|join(',', attribute='role') }}",
    "items": "{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}"
             "{% for k in messages[0].keys() %}{{ k }},{% endfor %}{% for v in messages[0].values() %}{{ v }},{% endfor %}"
             "{% for k, v in messages[0]|items %}{{ k }}{% endfor %}{{ messages[0].get('nope', 'none') }}"
             "{{ messages[0].get('nope') }}",
    "slices": "{{ 'abcdef'[::-1] }} {{ 'abcdef'[1:3] }} {{ 'abcdef'[-2:] }} {{ 'abcdef'[:-1] }} {{ 'abcdef'[::2] }}"
              "{% for m in messages[::-1] %}{{ m.role }} {% endfor %}{% for m in messages[1:] %}{{ m.role }} {% endfor %}"
              "{{ messages[1:][0].role }} {{ messages[-1].role }} {{ messages[:-1]|length }} {{ [1, 2, 3][1:] }}",
    "namespace": "{% set ns = namespace(found=false, n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
                 "{% if m.role == 'assistant' %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }} {{ ns.n }}",
    "loop": "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}"
            "{{ loop.length }}{% if not loop.last %}{{ loop.nextitem.role }}{% endif %}"
            "{% if not loop.first %}{{ loop.previtem.role }}{% endif %};{% endfor %}",
    "loop_changed_cycle": "{% for m in messages %}{{ loop.cycle('a', 'b') }}{% if loop.changed(m.role) %}!{% endif %}{% endfor %}",
    "break_continue": "{% for m in messages %}{% if loop.index0 == 0 %}{% continue %}{% endif %}{{ m.role }}"
                      "{% if m.role == 'assistant' %}{% break %}{% endif %}{% endfor %}",
    "macro": "{% macro turn(m, end='.') %}[{{ m.role }}]{{ m.content|trim }}{{ end }}{% endmacro %}"
             "{% for m in messages %}{{ turn(m) }}{{ turn(m, end='!') }}{% endfor %}",
    "call_block": "{% macro box(x) %}<{{ x }}>{{ caller() }}</{{ x }}>{% endmacro %}{% call box('b') %}in{% endcall %}",
    "is_defined": "{{ tools is defined }} {{ tools is none }} {{ nope is defined }} {{ nope is undefined }} "
                  "{{ messages[0].tool_calls is defined }} {{ messages[0].content is string }} {{ messages is iterable }} "
                  "{{ messages is mapping }} {{ messages[0] is mapping }} {{ 1 is number }} {{ 3 is odd }} {{ true is boolean }}",
    "default_filter": "{{ nope|default('d') }} {{ ''|default('d') }} {{ ''|default('d', true) }} {{ nope or 'x' }}",
    "tojson": "{{ messages|tojson }}\n{{ messages[3]|tojson(indent=2) }}\n{{ {'b': [1, 2.5, true, none, {}], 'a': []}|tojson }}"
              "\n{{ {'b': 1, 'a': 'ä'}|tojson(ensure_ascii=true, sort_keys=true) }}\n{{ [1, [2, {'x': []}]]|tojson(indent=4) }}"
              "\n{{ {'a': [1, 2]}|tojson(separators=(',', ':')) }}\n{{ [1e16, 1e-5, 1.0, 123456789.5, 0.1]|tojson }}",
    "printing": "{{ true }} {{ none }} {{ 1.0 }} {{ 2 ** 10 }} {{ 7 // 2 }} {{ 7 / 2 }} {{ -7 % 3 }} {{ [1, 'a', none, true] }} "
                "{{ {'k': 'v', 'n': [1.5]} }} {{ \"it's\" }} {{ [\"it's\"] }} {{ ['a\\nb'] }} {{ 1e20 }} {{ nope }}|",
    "operators": "{{ 'a' ~ 1 ~ none ~ [1] }} {{ 'ab' * 3 }} {{ [1, 2] * 2 }} {{ [1] + [2] }} {{ 1 < 2 < 3 }} "
                 "{{ 'x' if messages|length > 3 else 'y' }} {{ not true }} {{ 2 in [1, 2] }} {{ 'yes' if '' else 'no' }} {{ 5 * 1.5 }}",
    "set_block": "{% set text %}{% for m in messages %}{{ m.role }},{% endfor %}{% endset %}[{{ text }}]{{ text|length }}",
    "filters": "{{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ messages|rejectattr('role', 'eq', 'user')|map(attribute='role')|list }} "
               "{{ [3, 1, 2]|sort }} {{ [3, 1, 2]|max }} {{ 'abc'|first }} {{ [1, 2]|last }} {{ 'a\nb'|indent(2) }} {{ 'a\n\nb'|indent(2, true) }} "
               "{{ ['a', 'b']|reverse|list }} {{ '%s-%d'|format('x', 3) }} {{ '{}-{b}'.format('x', b=3) }} {{ 3.7|int }} {{ '12'|int + 1 }} {{ 1|string + '2' }} {{ [1,2,2]|unique|list }}",
    "range_dict": "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(6, 0, -2) %}{{ i }}{% endfor %}{{ dict(a=1).a }}",
    "undefined_loop": "a{% for x in nope %}{{ x }}{% else %}empty{% endfor %}b",
    "strftime": "{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d %H:%M:%S %j %A %B %a %p %I %y %%') }}|{{ strftime_now('%-d') }}",
    "special_tokens": "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}",
    "generation_tag": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
                      "{%- else -%}\n{%- generation -%} x {%- endgeneration -%}{% endif %}{% endfor %}",
    "filter_block_with": "{% filter upper %}a{{ messages[0].role }}{% endfilter %}{% with x = 3 %}{{ x }}{% endwith %}",
    "nested_templates_literals": "{{ '{{' }}{{ '{% if %}' }}{{ \"a\\\"b\" }}{{ 'tab\\there' }}",
    "alternation_check": "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
                         "{{ raise_exception('Conversation roles must alternate user/assistant/...') }}{% endif %}{{ m.role }};{% endfor %}",
    "no_system": "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
                 "{% for m in messages %}{{ m.content }}{% endfor %}",
    "recursive_loop": "{% for x in [[1, [2, 3]], 4] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}",
}

# Tools as transformers hands them to a template, and a conversation that calls them.
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a \"place\" <now>",
        "parameters": {"type": "object", "required": ["place"], "properties": {
            "place": {"type": "string", "description": "Ort, z. B. Köln"},
            "days": {"type": "integer", "minimum": 1, "default": 1.0, "enum": [1, 2.5, None, True]}}}}},
    {"type": "function", "function": {
        "name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}},
]


def call(number: int, name: str, arguments: dict) -> dict:
    return {"id": f"abcdefg{number:02}", "type": "function",
            "function": {"name": name, "arguments": arguments}}


TOOL_CHAT = [
    {"role": "user", "content": "Weather in Köln and Rome?"},
    {"role": "assistant", "content": "", "reasoning_content": "two calls",
     "tool_calls": [call(1, "get_weather", {"place": "Köln \"Süd\"", "days": 2}),
                    call(2, "get_weather", {"days": 1.0, "place": "Rome", "x": [0.1, 1e-07, None, {}]})]},
    {"role": "tool", "content": "rain", "tool_call_id": "abcdefg01", "name": "get_weather"},
    {"role": "tool", "content": "sun", "tool_call_id": "abcdefg02", "name": "get_weather"},
    {"role": "assistant", "content": "Rain and sun."},
    {"role": "user", "content": "Thanks"},
]
ONE_CALL = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Do it"},
    {"role": "assistant", "content": "Yes.", "tool_calls": [call(3, "noop", {})]},
    {"role": "tool", "content": "done", "tool_call_id": "abcdefg03", "name": "noop"},
]
TOOL_CHATS = {"two_calls": TOOL_CHAT, "one_call": ONE_CALL, "user": USER}
THOUGHTS = [
    {"role": "user", "content": "2 < 3?"},
    {"role": "assistant", "content": "Yes.", "reasoning_content": "\nas 3 - 2 = 1\n"},
    {"role": "user", "content": "Sure?"},
]

# The ways in which templates of known families speak of tools.
TOOL_TEMPLATES = {
    "hermes": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}{{- tool | tojson }}{{- '\\n' }}{%- endfor %}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "assistant" and message.tool_calls %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
            {{- '<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' }}
            {{- tool_call.arguments | tojson + '}\\n</tool_call>' }}
        {%- endfor %}
    {%- elif message.role == "tool" %}
        {%- if loop.first or messages[loop.index0 - 1].role != "tool" %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != "tool" %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}""",
    "llama3": """{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if tools is not none %}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\\n\\n" }}{%- endfor %}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", "parameters": ' }}{{- tool_call.arguments | tojson }}{{- "}" }}
    {%- elif message.role == "tool" %}
        {%- if message.content is mapping %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
    {%- endif %}
{%- endfor %}""",
    "mistral": """{%- for message in messages %}
    {%- if message.role == "user" %}
        {%- if tools is not none and message == messages[-1] %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}{%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {{- "[INST] " + message.content + "[/INST]" }}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if tool_call.id|length != 9 %}{{- raise_exception("9 characters") }}{%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}{%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message.role == "tool" %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content|string + ', "call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}{{- message.content }}
    {%- endif %}
{%- endfor %}""",
    "everything": "{{ messages|tojson }}{{ tools|tojson(indent=2) }}{{ messages }}{{ tools }}",
}

THINKING = """{%- for message in messages %}
    {%- set reasoning = '' %}
    {%- if message.reasoning_content is string %}{%- set reasoning = message.reasoning_content %}{%- endif %}
    {%- if reasoning %}{{- '<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n' }}{%- endif %}
    {{- message.content }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

CHATS = {"user": USER, "chat": CHAT, "two": TWO, "empty": [{"role": "user", "content": ""}]}


class Generation(jinja2.ext.Extension):
    """{% generation %} … {% endgeneration %}: transformers' mark of the assistant's words."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.If(jinja2.nodes.Const(True), body, [], [], lineno=line)


def environment() -> ImmutableSandboxedEnvironment:
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(source: str, messages: list, generate: bool, tools: list | None = None,
           **variables) -> dict:
    try:
        text = environment().from_string(source).render(
            messages=messages, tools=tools, documents=None, add_generation_prompt=generate,
            bos_token="<s>", eos_token="</s>", **variables)
        return {"expected": text}
    except (jinja2.exceptions.TemplateError, TypeError) as error:
        return {"raises": str(error)}


def template_of(path: str) -> str:
    """The value of tokenizer.chat_template, found by its key in the head of a GGUF file."""
    with open(path, "rb") as file:
        head = file.read(64 << 20)
    key = b"tokenizer.chat_template"
    at = head.index(struct.pack("<Q", len(key)) + key) + 8 + len(key)
    kind, size = struct.unpack_from("<IQ", head, at)
    assert kind == 8, "not a string"
    return head[at + 12:at + 12 + size].decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FILE")
    arguments = parser.parse_args()
    old = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {"models": []}
    cases = []
    for group, templates in (("whitespace", WHITESPACE), ("python", PYTHON)):
        for name, source in templates.items():
            for chat in ("user", "chat", "two") if group == "python" else ("two",):
                result = render(source, CHATS[chat], True)
                if "raises" in result and "raise_exception" not in source:
                    continue  # the template needs more messages than this chat has
                cases.append({"name": f"{group}/{name}/{chat}", "template": source,
                              "messages": CHATS[chat], **result})
    for name, source in TOOL_TEMPLATES.items():
        for chat, messages in TOOL_CHATS.items():
            cases.append({"name": f"tools/{name}/{chat}", "template": source, "messages": messages,
                          "tools": TOOLS, **render(source, messages, True, TOOLS)})
    for name, variables in {"default": {}, "on": {"enable_thinking": True},
                            "off": {"enable_thinking": False}}.items():
        cases.append({"name": f"thinking/{name}/thoughts", "template": THINKING, "messages": THOUGHTS,
                      **variables, **render(THINKING, THOUGHTS, True, **variables)})
    models = old["models"]
    for model in arguments.model:
        name, path = model.split("=", 1)
        source = template_of(path)
        models = [m for m in models if m["name"] != name]
        models.append({"name": name, "sha256": hashlib.sha256(source.encode()).hexdigest(),
                       "cases": [{"messages": chat, "add_generation_prompt": generate,
                                  **render(source, chat, generate)}
                                 for chat in CHATS.values() for generate in (False, True)] +
                                # One whose template reads no tools gets them in our own words.
                                [{"messages": chat, "add_generation_prompt": True, "tools": TOOLS,
                                  **render(source, chat, True, TOOLS)}
                                 for chat in TOOL_CHATS.values() if "if tools" in source]})
    content = {"now_unix_s": int(NOW.timestamp()), "jinja2": jinja2.__version__, "cases": cases,
               "models": models}
    OUTPUT.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    print(f"{len(cases)} cases, {len(models)} models")


if __name__ == "__main__":
    main()
