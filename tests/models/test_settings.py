"""Settings as clients send them: what counts, what is reported, what still applies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hel_lsp.settings import Settings, parse


def test_nothing_given_is_the_defaults_of_the_reference() -> None:
    settings, problems = parse([])
    assert problems == []
    assert settings == Settings()
    model, mcp, bash = settings.model, settings.mcp, settings.tools.bash
    assert (model.provider, model.base_url, model.name, model.api_key_env) == ("openai", None, None, "HEL_API_KEY")
    assert (model.context_window, model.max_output_tokens, model.timeout) == (128_000, 8192, 120)
    assert (model.temperature, model.extra_body) == (None, None)
    assert (mcp.enabled, mcp.start_timeout, mcp.call_timeout, mcp.start_wait) == (True, 30, 300, 3)
    assert (mcp.auto_load, mcp.catalogue_budget, mcp.long_names, mcp.trust_annotations) == (True, 4000, "drop", False)
    assert (settings.tools.disabled, bash.timeout, bash.sandbox, bash.network) == ((), 120, "auto", True)
    assert (settings.access, settings.limits.max_steps, settings.answer) == ("confirm", 50, "auto")


def test_every_setting_can_be_set() -> None:
    given = {
        "model": {
            "provider": "anthropic", "baseUrl": "http://x/v1", "name": "m", "apiKeyEnv": "K", "contextWindow": 1000,
            "maxOutputTokens": 10, "temperature": 0, "extraBody": {"a": [1]}, "timeout": 1.5,
        },
        "access": "auto",
        "mcp": {
            "enabled": False, "startTimeout": 1, "callTimeout": 2, "startWait": 0, "autoLoad": False,
            "catalogueBudget": 0, "longNames": "hash", "trustAnnotations": True,
        },
        "tools": {"disabled": ["bash"], "bash": {"timeout": 3, "sandbox": "off", "network": False}},
        "limits": {"maxSteps": 1},
        "answer": "none",
    }  # fmt: skip
    settings, problems = parse([given])
    assert problems == []
    assert settings.model.extra_body == {"a": [1]}
    assert settings.tools.disabled == ("bash",)
    default = Settings()
    for section in ("model", "mcp", "tools", "limits"):
        for name in type(getattr(settings, section)).__dataclass_fields__:
            assert getattr(getattr(settings, section), name) != getattr(getattr(default, section), name), name
    assert (settings.access, settings.answer, settings.tools.bash.sandbox) == ("auto", "none", "off")


def test_later_layers_win_key_by_key() -> None:
    settings, problems = parse(
        [
            {"model": {"name": "first", "timeout": 5}, "tools": {"bash": {"timeout": 7}}},
            {"model": {"name": "second"}, "tools": {"bash": {"network": False}}},
        ]
    )
    assert problems == []
    assert (settings.model.name, settings.model.timeout) == ("second", 5)
    assert (settings.tools.bash.timeout, settings.tools.bash.network) == (7, False)


@pytest.mark.parametrize("unset", [None, "", "  "])
def test_null_and_an_empty_box_leave_what_an_earlier_layer_said(unset: str | None) -> None:
    settings, problems = parse(
        [{"model": {"name": "m", "apiKeyEnv": "K"}}, {"model": {"name": unset, "apiKeyEnv": unset}}]
    )
    assert problems == []
    assert (settings.model.name, settings.model.api_key_env) == ("m", "K")


def test_layers_and_sections_may_be_null() -> None:
    assert parse([None, {"model": None, "tools": {"bash": None}}]) == (Settings(), [])


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"acess": "auto"}, "Unknown setting acess: expected one of model, access, mcp, tools, limits, answer."),
        ({"limits": {"steps": 1}}, "Unknown setting limits.steps: expected maxSteps."),
        ({"model": {"api_key_env": "K"}}, "Unknown setting model.api_key_env: expected one of provider, baseUrl,"),
        ({"model.name": "m"}, 'Unknown setting "model.name": expected nested objects, {"model": {"name": …}}.'),
        ({5: 1}, "Unknown setting 5:"),
        ({"model": "gpt"}, "Setting model: expected an object."),
        ({"tools": {"bash": []}}, "Setting tools.bash: expected an object."),
        ({"access": "confrim"}, 'Setting access: expected one of "read-only", "confirm", "auto".'),
        ({"access": ["auto"]}, 'Setting access: expected one of "read-only", "confirm", "auto".'),
        ({"model": {"name": 5}}, "Setting model.name: expected a string."),
        ({"model": {"timeout": True}}, "Setting model.timeout: expected a positive number of seconds."),
        ({"model": {"timeout": 0}}, "Setting model.timeout: expected a positive number of seconds."),
        ({"model": {"timeout": float("nan")}}, "Setting model.timeout: expected a positive number of seconds."),
        ({"model": {"timeout": float("inf")}}, "Setting model.timeout: expected a positive number of seconds."),
        ({"model": {"timeout": 10**400}}, "Setting model.timeout: expected a positive number of seconds."),
        ({"model": {"timeout": "120"}}, "Setting model.timeout: expected a positive number of seconds."),
        ({"mcp": {"startWait": -1}}, "Setting mcp.startWait: expected a number of seconds, 0 or more."),
        ({"model": {"temperature": 2.5}}, "Setting model.temperature: expected a number from 0 to 2."),
        ({"model": {"contextWindow": 0}}, "Setting model.contextWindow: expected a whole number, 1 or more."),
        ({"limits": {"maxSteps": 1.5}}, "Setting limits.maxSteps: expected a whole number, 1 or more."),
        ({"limits": {"maxSteps": True}}, "Setting limits.maxSteps: expected a whole number, 1 or more."),
        ({"mcp": {"enabled": 1}}, "Setting mcp.enabled: expected true or false."),
        ({"tools": {"disabled": "bash"}}, "Setting tools.disabled: expected a list of strings."),
        ({"tools": {"disabled": [1]}}, "Setting tools.disabled: expected a list of strings."),
        ({"model": {"extraBody": []}}, "Setting model.extraBody: expected an object."),
    ],
)  # fmt: skip
def test_a_mistake_names_the_key_and_what_was_expected_and_changes_nothing(
    given: dict[object, object], problem: str
) -> None:
    settings, problems = parse([given])
    assert settings == Settings()
    assert len(problems) == 1
    assert problems[0].startswith(problem)


@pytest.mark.parametrize("layer", [[], "auto", 5])
def test_settings_that_are_no_object_are_reported(layer: object) -> None:
    assert parse([layer]) == (Settings(), ["The settings: expected an object."])


def test_a_mistake_leaves_the_rest_and_the_earlier_layers_in_force() -> None:
    settings, problems = parse(
        [
            {"model": {"name": "m", "timeout": 5}},
            {"model": {"timeout": "long", "temperature": 1, "oops": 1}, "access": "auto"},
        ]
    )
    assert len(problems) == 2
    assert (settings.model.name, settings.model.timeout, settings.model.temperature) == ("m", 5, 1)
    assert settings.access == "auto"


def test_a_mistake_that_comes_twice_is_reported_once() -> None:
    assert len(parse([{"oops": 1}, {"oops": 2}])[1]) == 1


def test_a_value_is_never_repeated_in_a_report() -> None:
    _, problems = parse([{"model": {"apiKey": "sk-secret", "provider": "sk-secret", "timeout": "sk-secret"}}])
    assert len(problems) == 3
    assert "sk-secret" not in " ".join(problems)


def test_a_whole_number_may_be_written_with_a_fraction_of_zero() -> None:
    settings, problems = parse([{"limits": {"maxSteps": 20.0}}])
    assert problems == []
    assert repr(settings.limits.max_steps) == "20"


def test_settings_and_the_choice_of_an_endpoint_load_nothing_heavy() -> None:
    program = (
        "import sys, hel_lsp.settings, hel_lsp.ports, hel_lsp.models.config\n"
        "print([name for name in ('httpx', 'pydantic', 'anyio', 'mcp', 'pygls', 'jsonschema') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == "[]"
