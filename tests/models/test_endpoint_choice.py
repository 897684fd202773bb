"""Which endpoint the settings and the environment come to, and what is said when they come to none."""

from __future__ import annotations

import socket

import pytest

from hel_lsp.errors import ModelNotConfigured
from hel_lsp.models import config
from hel_lsp.models.config import answering, choose_endpoint
from hel_lsp.settings import ModelSettings

LOCAL = "http://127.0.0.1:11434/v1"
AWAY = "https://models.example/v1"


def test_settings_come_before_the_environment() -> None:
    environ = {"HEL_BASE_URL": "http://localhost:1/v1", "HEL_MODEL": "other", "OPENAI_API_KEY": "k"}
    endpoint = choose_endpoint(ModelSettings(base_url=LOCAL, name="qwen"), environ)
    assert (endpoint.base_url, endpoint.model) == (LOCAL, "qwen")


def test_the_environment_names_endpoint_model_and_key() -> None:
    endpoint = choose_endpoint(ModelSettings(), {"HEL_BASE_URL": AWAY, "HEL_MODEL": "m", "HEL_API_KEY": " k \n"})
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == (AWAY, "m", "k")


@pytest.mark.parametrize(
    ("environ", "url", "model"),
    [
        ({"DEEPSEEK_API_KEY": "d"}, "https://api.deepseek.com/v1", "deepseek-chat"),
        ({"OPENAI_API_KEY": "o"}, "https://api.openai.com/v1", "gpt-4.1"),
        ({"OPENAI_API_KEY": "o", "DEEPSEEK_API_KEY": "d"}, "https://api.deepseek.com/v1", "deepseek-chat"),
        ({"OPENAI_API_KEY": "o", "HEL_MODEL": "mine", "DEEPSEEK_API_KEY": ""}, "https://api.openai.com/v1", "mine"),
        ({"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}, "https://api.openai.com/v1", "gpt-4.1"),
    ],
)
def test_the_key_that_is_set_chooses_the_provider(environ: dict[str, str], url: str, model: str) -> None:
    endpoint = choose_endpoint(ModelSettings(), environ)
    assert (endpoint.base_url, endpoint.model) == (url, model)
    assert endpoint.api_key == next(environ[name] for name in (endpoint.key_variable,))


def test_the_variable_of_the_settings_holds_the_key_and_has_no_stand_in() -> None:
    environ = {"WORK_KEY": "w", "HEL_API_KEY": "h", "OPENAI_API_KEY": "o"}
    chosen = ModelSettings(base_url=AWAY, name="m", api_key_env="WORK_KEY")
    assert choose_endpoint(chosen, environ).api_key == "w"
    del environ["WORK_KEY"]
    with pytest.raises(ModelNotConfigured, match="environment variable WORK_KEY"):
        choose_endpoint(chosen, environ)


def test_a_providers_key_goes_to_its_own_host_and_to_no_other() -> None:
    environ = {"OPENAI_API_KEY": "o"}
    own = ModelSettings(base_url="https://api.openai.com/v1/", name="m")
    assert choose_endpoint(own, environ).api_key == "o"
    for url in ("https://api.openai.com.example/v1", "http://api.openai.com/v1", "https://api.openai.com:8443/v1"):
        with pytest.raises(ModelNotConfigured, match="There is no key"):
            choose_endpoint(ModelSettings(base_url=url, name="m"), environ)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.8.8.8"])
def test_a_server_on_this_machine_needs_no_key(host: str) -> None:
    endpoint = choose_endpoint(ModelSettings(base_url=f"http://{host}:1234/v1", name="m"), {})
    assert endpoint.loopback
    assert endpoint.api_key == ""


@pytest.mark.parametrize("host", ["10.0.0.1", "localhost.example", "0.0.0.0", "127.0.0.1.example"])
def test_a_server_elsewhere_needs_a_key(host: str) -> None:
    with pytest.raises(ModelNotConfigured, match=f"There is no key for http://{host}:1234/v1"):
        choose_endpoint(ModelSettings(base_url=f"http://{host}:1234/v1", name="m"), {})


def test_an_endpoint_without_a_model_name_asks_for_one() -> None:
    with pytest.raises(ModelNotConfigured, match=r"Set model\.name \(or HEL_MODEL\)"):
        choose_endpoint(ModelSettings(base_url=LOCAL), {})


@pytest.mark.parametrize(
    "url", ["https://x.example/v1/", "https://x.example/v1/chat/completions", "https://x.example/v1/messages"]
)
def test_what_people_add_to_a_base_url_is_taken_off(url: str) -> None:
    endpoint = choose_endpoint(ModelSettings(base_url=url, name="m"), {"HEL_API_KEY": "k"})
    assert endpoint.url("chat/completions") == "https://x.example/v1/chat/completions"


def test_a_query_stays_at_the_end_and_out_of_messages() -> None:
    settings = ModelSettings(base_url="https://x.example/v1?api-version=2", name="m")
    endpoint = choose_endpoint(settings, {"HEL_API_KEY": "k"})
    assert endpoint.url("chat/completions") == "https://x.example/v1/chat/completions?api-version=2"
    assert endpoint.shown == "https://x.example/v1"


@pytest.mark.parametrize(
    "url",
    [
        "x.example/v1",
        "ftp://x.example",
        "http://",
        "http://x:99999/v1",
        "http://[::1/v1",
        "http://a b/v1",
        "localhost:11434",
    ],
)
def test_what_is_no_url_is_refused_by_the_name_of_its_setting(url: str) -> None:
    with pytest.raises(ModelNotConfigured, match=r"model\.baseUrl"):
        choose_endpoint(ModelSettings(base_url=url, name="m"), {"HEL_API_KEY": "k"})


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ModelNotConfigured, match="user name or a password") as caught:
        choose_endpoint(ModelSettings(base_url="https://me:hunter2@x.example/v1", name="m"), {})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk 1", "sk\n1", "schlüssel", "sk\x00"])
def test_a_key_that_cannot_be_one_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ModelNotConfigured, match="variable HEL_API_KEY holds characters") as caught:
        choose_endpoint(ModelSettings(base_url=AWAY, name="m"), {"HEL_API_KEY": key})
    assert key not in str(caught.value)


def test_the_key_is_not_in_the_repr() -> None:
    assert "sekret" not in repr(choose_endpoint(ModelSettings(base_url=AWAY, name="m"), {"HEL_API_KEY": "sekret"}))


def test_anthropics_key_alone_or_its_format_alone_chooses_its_endpoint_and_format() -> None:
    for settings in (ModelSettings(), ModelSettings(provider="anthropic")):
        endpoint = choose_endpoint(settings, {"ANTHROPIC_API_KEY": "a"})
        assert (endpoint.base_url, endpoint.wire_format) == ("https://api.anthropic.com/v1", "anthropic")
        assert (endpoint.api_key, endpoint.model) == ("a", "claude-sonnet-5")
    both = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "HEL_MODEL": "mine"}
    chosen = choose_endpoint(ModelSettings(provider="anthropic"), both)
    assert (chosen.api_key, chosen.model, chosen.wire_format) == ("a", "mine", "anthropic")
    assert choose_endpoint(ModelSettings(), both).wire_format == "openai"


def test_a_url_is_asked_in_the_format_that_the_settings_name() -> None:
    for wire_format in ("openai", "anthropic"):
        settings = ModelSettings(provider=wire_format, base_url=LOCAL, name="m")  # type: ignore[arg-type]
        assert choose_endpoint(settings, {}).wire_format == wire_format
    compatible = ModelSettings(base_url="https://api.anthropic.com/v1", name="claude")
    endpoint = choose_endpoint(compatible, {"ANTHROPIC_API_KEY": "a"})
    assert (endpoint.api_key, endpoint.wire_format) == ("a", "openai")


def test_anthropics_format_without_a_key_names_its_variable() -> None:
    with pytest.raises(
        ModelNotConfigured, match=r"no key for https://api\.anthropic\.com/v1.*variable ANTHROPIC_API_KEY"
    ):
        choose_endpoint(ModelSettings(provider="anthropic"), {"OPENAI_API_KEY": "o"})


def test_with_nothing_configured_the_choices_are_named_and_none_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as running, socket.socket() as idle:
        idle.bind(("127.0.0.1", 0))
        urls = [f"http://127.0.0.1:{taken.getsockname()[1]}/v1" for taken in (running, idle)]
        servers = (("Ollama", urls[0]), ("LM Studio", urls[1]))
        monkeypatch.setattr(config, "LOCAL_SERVERS", servers)
        with pytest.raises(ModelNotConfigured) as caught:
            choose_endpoint(ModelSettings(), {"HEL_API_KEY": "k", "HEL_MODEL": "m"})
        assert answering(servers) == [f"Ollama's port ({urls[0]})"]
    message = caught.value.message
    for name in (
        "model.baseUrl",
        "model.name",
        "HEL_BASE_URL",
        "HEL_MODEL",
        "DEEPSEEK_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        *urls,
    ):
        assert name in message
    assert message.endswith(f"Something answers now at Ollama's port ({urls[0]}).")


def test_the_usual_ports_of_local_servers_are_offered() -> None:
    assert [url for _, url in config.LOCAL_SERVERS] == [LOCAL, "http://127.0.0.1:8080/v1", "http://127.0.0.1:1234/v1"]
