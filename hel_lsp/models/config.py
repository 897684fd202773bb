"""Which endpoint to ask: from the settings and the environment, without asking anything over the network."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from hel_lsp.errors import ModelNotConfigured
from hel_lsp.settings import ModelSettings

WireFormat = Literal["openai", "anthropic"]

# ------------------------------------------------------------------ what is known beforehand


@dataclass(frozen=True, slots=True)
class Provider:
    """A hosted provider that is used when its key is in the environment."""

    key_variable: str
    base_url: str
    model: str
    wire_format: WireFormat = "openai"


DEEPSEEK = Provider("DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-chat")
OPENAI = Provider("OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-4.1")
ANTHROPIC = Provider("ANTHROPIC_API_KEY", "https://api.anthropic.com/v1", "claude-sonnet-5", "anthropic")
PROVIDERS = (DEEPSEEK, OPENAI, ANTHROPIC)

LOCAL_SERVERS = (
    ("Ollama", "http://127.0.0.1:11434/v1"),
    ("llama.cpp", "http://127.0.0.1:8080/v1"),
    ("LM Studio", "http://127.0.0.1:1234/v1"),
)
"""Servers that people run on their own machine, at their usual ports: offered, never used unasked."""

OWN_KEY_VARIABLE = ModelSettings().api_key_env

_NO_URL = (
    "model.baseUrl (or HEL_BASE_URL) is no URL of a server: expected http:// or https://, a host, and the path up to "
    "and including /v1."
)

# ------------------------------------------------------------------ the endpoint


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and in which format. `key_variable` is the variable that held the key, or should hold it."""

    base_url: str
    model: str
    key_variable: str
    api_key: str = field(default="", repr=False)
    wire_format: WireFormat = "openai"

    def url(self, path: str) -> str:
        """The address of `path` below the base URL; a query in the base URL stays at its end."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(path=f"{parts.path}/{path}"))

    @property
    def shown(self) -> str:
        """The base URL without its query, which may hold a secret."""
        return urlunsplit(urlsplit(self.base_url)._replace(query=""))

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).hostname or ""

    @property
    def loopback(self) -> bool:
        """Whether the endpoint is on this machine: it needs no key and no proxy."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_endpoint(settings: ModelSettings, environ: Mapping[str, str]) -> Endpoint:
    """The endpoint that the settings name, else the environment, else the first provider whose key is set.

    A provider that is chosen by its key is asked in its own format; a URL, in the one that `model.provider` names.
    Raises ModelNotConfigured with the choices that there are, or with what is wrong with the one that was made.
    """
    wire_format: WireFormat = settings.provider
    base_url = settings.base_url or _variable(environ, "HEL_BASE_URL")
    if base_url:
        base_url = _checked(base_url)
        provider = _provider_at(base_url)
    else:
        keyed = (known for known in PROVIDERS if _variable(environ, known.key_variable))
        provider = ANTHROPIC if wire_format == "anthropic" else next(keyed, None)
        if provider is None:
            raise ModelNotConfigured(_choices(settings))
        base_url, wire_format = provider.base_url, provider.wire_format
    name = settings.name or _variable(environ, "HEL_MODEL") or (provider.model if provider else "")
    variable, key = _key(settings, environ, provider)
    endpoint = Endpoint(base_url, name, variable, key, wire_format)
    if not name:
        raise ModelNotConfigured(f"No model is named for {endpoint.shown}. Set model.name (or HEL_MODEL).")
    if not key and not endpoint.loopback:
        raise ModelNotConfigured(
            f"There is no key for {endpoint.shown}. Set the environment variable {variable} for the process that "
            "starts hel-lsp (to any value where the server wants none), or name another variable in model.apiKeyEnv."
        )
    return endpoint


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()


def _checked(base_url: str) -> str:
    """The URL without a trailing slash or the path of a request, which people copy along."""
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ModelNotConfigured(_NO_URL) from None
    if not usable or not base_url.isprintable() or " " in base_url:
        raise ModelNotConfigured(_NO_URL)
    if parts.username is not None or parts.password is not None:
        raise ModelNotConfigured(
            "model.baseUrl (or HEL_BASE_URL) holds a user name or a password, which would end up in logs. "
            "The key belongs into the environment variable that model.apiKeyEnv names."
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/messages").rstrip("/")
    return urlunsplit(parts._replace(path=path, fragment=""))


def _provider_at(base_url: str) -> Provider | None:
    """The known provider behind the URL: its key goes to its own host and to no other."""
    parts = urlsplit(base_url)
    if parts.scheme != "https":
        return None
    return next((known for known in PROVIDERS if urlsplit(known.base_url).netloc == parts.netloc.lower()), None)


def _key(settings: ModelSettings, environ: Mapping[str, str], provider: Provider | None) -> tuple[str, str]:
    """The variable and the key in it. A variable that the user chose has no stand-in."""
    names = [settings.api_key_env]
    if provider is not None and settings.api_key_env == OWN_KEY_VARIABLE:
        names.append(provider.key_variable)
    for name in names:
        key = _variable(environ, name)
        if key:
            if not key.isascii() or not key.isprintable() or " " in key:
                raise ModelNotConfigured(f"The environment variable {name} holds characters that no key has.")
            return name, key
    return names[-1], ""


# ------------------------------------------------------------------ nothing is configured


def _choices(settings: ModelSettings) -> str:
    offered = ", ".join(f"{name} at {url}" for name, url in LOCAL_SERVERS)
    running = answering(LOCAL_SERVERS)
    found = f" Something answers now at {' and '.join(running)}." if running else ""
    key = f" with its key in {settings.api_key_env}" if settings.api_key_env else ""
    return (
        "No model is configured. Set model.baseUrl and model.name (or HEL_BASE_URL and HEL_MODEL) to an "
        f"OpenAI-compatible endpoint{key}, or set one of {', '.join(known.key_variable for known in PROVIDERS)}. "
        f"Servers on this machine need no key: {offered}.{found}"
    )


def answering(servers: Sequence[tuple[str, str]]) -> list[str]:
    """Those of `servers` (name, loopback URL) whose port accepts a connection, within 0.1 s each; nothing is sent."""
    return [f"{name}'s port ({url})" for name, url in servers if _accepts(url)]


def _accepts(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=0.1):
            return True
    except OSError:
        return False
