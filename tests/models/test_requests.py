"""What is sent: the bytes of a body, the connection it goes over, and where the key goes."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import statistics
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hel_lsp.errors import ModelRefused, ModelUnavailable
from hel_lsp.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from hel_lsp.ports import ModelRequest
from tests.models.played import DONE, HELLO, Client, Played, PlayedServer, chunk, played, refused

STOP = chunk({}, "stop")
HI = played(chunk({"content": "hi"}), STOP, DONE)
MESSAGES: tuple[Message, ...] = (
    SystemMessage("Be good."),
    UserMessage("naïve 😀?"),
    AssistantMessage("", (ToolCall("c1", "read_file", '{"path": "a"}'),), "thinking"),
    ToolMessage("c1", "port=7000\n"),
)
TOOLS = [ToolDefinition("write_file", "Write.", {"type": "object"}), ToolDefinition("bash", "Run.", {})]

# ------------------------------------------------------------------ the body


async def test_the_body_is_the_conversation_in_few_bytes(client: Client) -> None:
    await client.ask(HI, request=ModelRequest(MESSAGES, TOOLS))
    assert client.server.bodies[0].decode() == (
        '{"model":"test-model","stream":true,"stream_options":{"include_usage":true},"max_tokens":8192,'
        '"tools":[{"type":"function","function":{"name":"write_file","description":"Write.","parameters":'
        '{"type":"object"}}},{"type":"function","function":{"name":"bash","description":"Run.","parameters":{}}}],'
        '"messages":[{"role":"system","content":"Be good."},{"role":"user","content":"naïve 😀?"},'
        '{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":'
        '{"name":"read_file","arguments":"{\\"path\\": \\"a\\"}"}}]},'
        '{"role":"tool","tool_call_id":"c1","content":"port=7000\\n"}]}'
    )


async def test_the_same_messages_are_the_same_bytes_and_more_of_them_begin_with_these(client: Client) -> None:
    for count in (3, 3, 4):
        await client.ask(HI, request=ModelRequest(MESSAGES[:count], TOOLS))
    first, again, longer = client.server.bodies
    assert first == again
    assert longer.startswith(first.removesuffix(b"]}"))


async def test_without_tools_there_is_no_tools_field(client: Client) -> None:
    await client.ask(HI)
    assert "tools" not in client.server.requests[0]


async def test_settings_are_passed_through_and_leave_the_conversation_alone(client: Client) -> None:
    extra = {"thinking": {"type": "off"}, "max_tokens": 5, "stream": False, "messages": [], "tools": []}
    client.plays(HI)
    model = client.make(temperature=0.25, max_output_tokens=100, extra_body=extra)
    _ = [item async for item in model.stream(HELLO)]
    sent = client.server.requests[0]
    assert sent["temperature"] == 0.25
    assert sent["thinking"] == {"type": "off"}
    assert sent["max_tokens"] == 5
    assert sent["stream"] is True
    assert sent["messages"] == [{"role": "user", "content": "hello"}]
    assert "tools" not in sent


async def test_a_name_that_the_model_made_up_does_not_poison_the_history(client: Client) -> None:
    call = ToolCall("c", "search replace!" + "x" * 80, "{}")
    await client.ask(HI, request=ModelRequest([AssistantMessage("", (call,))], []))
    name = client.server.requests[0]["messages"][0]["tool_calls"][0]["function"]["name"]
    assert name.startswith("search_replace_xx")
    assert len(name) == 64


async def test_a_half_character_in_the_conversation_can_be_sent(client: Client) -> None:
    await client.ask(HI, request=ModelRequest([UserMessage("a\udcffb")], []))
    assert client.server.requests[0]["messages"][0]["content"] == "a?b"


async def test_reasoning_is_echoed_once_the_endpoint_asks_for_it(client: Client) -> None:
    complaint = {"error": {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}}
    request = ModelRequest(MESSAGES, [])
    await client.ask(refused(400, complaint), HI, request=request)
    await client.ask(HI, request=request)
    echoed = [sent["messages"][2].get("reasoning_content") for sent in client.server.requests]
    assert echoed == [None, "thinking", "thinking"]
    assert client.waits == []


async def test_reasoning_is_no_longer_echoed_to_an_endpoint_that_refuses_it(client: Client) -> None:
    request = ModelRequest(MESSAGES, [])
    await client.ask(refused(400, "missing reasoning_content"), HI, request=request)
    await client.ask(refused(400, "reasoning_content is not allowed"), HI, request=request)
    echoed = ["reasoning_content" in sent["messages"][2] for sent in client.server.requests]
    assert echoed == [False, True, True, False]


# ------------------------------------------------------------------ the connection


async def test_one_connection_serves_many_requests(client: Client) -> None:
    for _ in range(5):
        await client.ask(HI)
    assert client.server.connections == 1


async def test_a_server_that_stays_silent_after_done_holds_up_nothing(client: Client) -> None:
    client.plays(Played((chunk({"content": "hi"}), STOP, DONE), end="open"))
    began = time.monotonic()
    assert (await client.ask()).reply.text == "hi"
    assert time.monotonic() - began < 5
    assert (await client.ask(HI)).reply.text == "hi"


async def test_the_next_request_follows_a_reply_within_ten_milliseconds(client: Client) -> None:
    history: list[Message] = [SystemMessage("x" * 4000)]
    for turn in range(21):
        history.append(UserMessage(f"{turn} " + "y" * 2000))
        await client.ask(HI, request=ModelRequest(history, TOOLS))
    gaps = [begin - end for begin, end in zip(client.server.arrived[1:], client.server.written, strict=False)]
    assert statistics.median(gaps) < 0.01


async def test_several_streams_run_beside_each_other(client: Client) -> None:
    client.plays(*[HI] * 4)
    answers = await asyncio.gather(*(client.ask() for _ in range(4)))
    assert [answer.reply.text for answer in answers] == ["hi"] * 4


# ------------------------------------------------------------------ where the key goes


@pytest.fixture
async def other() -> AsyncGenerator[PlayedServer, None]:
    server = PlayedServer()
    await server.start()
    yield server
    await server.stop()


def moved(status: int, to: str) -> Played:
    return Played(status=status, headers={"Location": to})


async def test_the_key_goes_to_the_endpoint(client: Client) -> None:
    await client.ask(HI)
    assert client.server.headers[0]["authorization"] == "Bearer sk-secret-key"


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_on_the_same_server_is_followed_with_the_key(client: Client, status: int) -> None:
    assert (await client.ask(moved(status, "/elsewhere/chat/completions"), HI)).reply.text == "hi"
    assert client.server.headers[1]["authorization"] == "Bearer sk-secret-key"
    assert client.server.bodies[0] == client.server.bodies[1]


async def test_a_redirect_to_another_server_does_not_carry_the_key(client: Client, other: PlayedServer) -> None:
    other.replies.append(HI)
    assert (await client.ask(moved(307, f"{other.base_url}/chat/completions"))).reply.text == "hi"
    assert "authorization" not in other.headers[0]
    assert other.bodies == client.server.bodies


async def test_a_redirect_that_asks_for_the_key_says_where_it_came_from(client: Client, other: PlayedServer) -> None:
    other.replies.append(refused(401, "key?"))
    with pytest.raises(ModelRefused, match=rf"redirected to 127\.0\.0\.1:{other.port}, which does not get the key"):
        await client.ask(moved(308, f"{other.base_url}/chat/completions"))


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_lose_the_request_is_an_error(
    client: Client, other: PlayedServer, status: int
) -> None:
    with pytest.raises(ModelRefused, match=rf"\({status}\)\. Check model\.baseUrl\. It points to {other.base_url}"):
        await client.ask(moved(status, other.base_url))
    assert other.connections == 0


@pytest.mark.parametrize("to", ["ftp://127.0.0.1/x", "http://127.0.0.1:99999/x", "/again"])
async def test_a_redirect_that_leads_nowhere_is_an_error(client: Client, to: str) -> None:
    with pytest.raises(ModelRefused, match=r"\(307\)\. Check model\.baseUrl\."):
        await client.ask(*[moved(307, to)] * 6)


async def test_a_redirect_to_no_address_is_an_error(client: Client) -> None:
    with pytest.raises(ModelUnavailable):
        await client.ask(*[moved(307, "http://[bad/")] * 5)


# ------------------------------------------------------------------ proxies and certificates


async def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(
    client: Client, other: PlayedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{other.port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert (await client.ask(HI)).reply.text == "hi"
    assert other.connections == 0
    other.replies.append(HI)
    model = client.make(base_url="http://model.example/v1")
    assert [item async for item in model.stream(HELLO)][-1].text == "hi"  # type: ignore[union-attr]
    assert other.headers[0]["host"] == "model.example"


@pytest.mark.parametrize("proxy", ["socks5://user:hunter2@127.0.0.1:1", "odd://user:hunter2@127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_used_is_an_error(
    client: Client, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ModelUnavailable, match="proxy or certificate settings") as caught:
        await client.ask()
    assert "hunter2" not in caught.value.message


async def test_a_file_of_certificates_that_is_not_there_is_an_error(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "certificates.pem"
    broken.write_text("no certificate", encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(broken))
    with pytest.raises(ModelUnavailable, match="proxy or certificate settings"):
        await client.ask()


async def test_a_certificate_that_nobody_trusts_is_refused_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate = self_signed(tmp_path)
    server = PlayedServer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    await server.start(context)
    url = f"https://127.0.0.1:{server.port}/v1"
    with pytest.raises(ModelUnavailable, match=r"certificate of 127\.0\.0\.1 is not trusted.*SSL_CERT_FILE"):
        _ = [item async for item in client.make(base_url=url).stream(HELLO)]
    assert client.waits == []
    assert server.bodies == []
    server.replies.append(HI)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert [item async for item in client.make(base_url=url).stream(HELLO)][-1].text == "hi"  # type: ignore[union-attr]
    await server.stop()


def self_signed(folder: Path) -> Path:
    """A file with a new key and a certificate for 127.0.0.1 that only itself vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now - timedelta(1), now + timedelta(1)
        )
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    plain = serialization.NoEncryption()
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return file
