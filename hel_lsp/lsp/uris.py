"""File paths and `file:` URIs, as editors spell them.

Pure string functions: `windows` says whose paths are meant, so both kinds can be tested anywhere.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote_to_bytes

WINDOWS = os.name == "nt"

_DRIVE = re.compile(r"/([A-Za-z]):(?=/|$)")


def uri_to_path(uri: str, *, windows: bool = WINDOWS) -> str | None:
    """The path that a `file:` URI names; None for any other scheme, or for a host that cannot be reached as a path.

    `#` and `?` are taken as part of the path: a document's URI has neither fragment nor query, and some clients
    forget to encode them.
    """
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "file" or not rest.startswith("/"):
        return None
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        path = slash + path
    path = _decode(path, windows)
    if host.lower() == "localhost":
        host = ""
    if not windows:
        return path if path and not host else None
    if host:
        return f"\\\\{host}" + path.replace("/", "\\")
    if _DRIVE.match(path):
        path = path[1:]
    return path.replace("/", "\\") or None


def path_to_uri(path: str | os.PathLike[str], *, windows: bool = WINDOWS) -> str:
    """The `file:` URI of an absolute path; everything but unreserved characters and `/` is percent-encoded."""
    text = os.fspath(path)
    host = ""
    if windows:
        text = text.replace("\\", "/")
        if text.startswith("//"):
            host, slash, text = text[2:].partition("/")
            text = slash + text
        elif not text.startswith("/"):
            text = "/" + text
    raw = text.encode("utf-8", "surrogatepass") if windows else os.fsencode(text)
    drive = _DRIVE.match(text) if windows else None
    return f"file://{host}" + (f"/{drive[1]}:" + quote(raw[3:]) if drive else quote(raw))


def same_document_key(uri: str) -> str:
    """One string for all spellings of a document's URI: percent-encoding, case of scheme and drive letter.

    Symlinks are not followed. A URI that is no `file:` URI is its own key.
    """
    path = uri_to_path(uri, windows=False)
    if path is None:
        return uri
    return "file://" + _DRIVE.sub(lambda drive: drive[0].lower(), path, count=1)


def _decode(text: str, windows: bool) -> str:
    raw = unquote_to_bytes(text)
    return raw.decode("utf-8", "surrogateescape") if windows else os.fsdecode(raw)
