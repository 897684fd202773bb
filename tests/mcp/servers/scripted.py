"""An MCP server in plain JSON-RPC that behaves as it is told, in either era of the protocol and well or badly.

    python scripted.py '{"era": "old", "tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}'
    python scripted.py @FILE

`era`: `old` knows no `server/discover`, `new` no `initialize`. `probe` says what is done when asked `server/discover`:
`dies` ends, `silent` gives no answer, and a number answers after so many seconds. `pages` (or `tools`, one page) is
what `tools/list` gives; a page may be an object that replaces the whole result. `calls` says by tool what a call comes
to, as a list of steps, each one of:

    {"result": …}, {"error": …}     the answer
    {"line": TEXT}, {"bytes": HEX}  a line of output as it is; %ID% in it stands for the id of the call
    {"fill": N}                     a result of N characters
    {"environment": true}           the server's environment as a result
    {"input": {…}}                  an `input_required` round, whose answer becomes the result
    {"ask": METHOD, "params": …}    a request to the client, whose answer becomes the result; with `then` after so many
                                    notifications of progress
    {"progress": N, "every": S}     N notifications, each after S seconds
    {"tools": […]}                  what is listed from now on
    {"notify": METHOD}              a notification, on the stream of changes where there is one
    {"hang_up": true}               the end of that stream
    {"wait": FILE}                  goes on when the file exists
    {"meet": PORT}                  connects there, and goes on when the connection ends
    {"exit": STATUS}, {"signal": N} the end

A call that is not in `calls` returns its arguments as text. Also in the configuration:

    record        a file that gets every message received, one a line
    noise         lines of output before anything else
    stderr        text
    start_when    a file without which nothing is answered
    children      how many sleeping processes are started; with own_group in groups of their own
    pids          a file that gets all process ids
    stays, deaf   does not end when its input closes, nor on SIGTERM
    listen        whether a stream of changes is granted; without it there is none
    grant_when    a file without which a stream of changes after the first one is not granted; with `refusal`, an error,
                  it is refused, else it is granted with the next message
    ttl           the lifetime of the list in milliseconds
    bare          whether whatever can be left out of an answer, rightly or not, is left out
    deep          how many arrays in one another stand for the text "DEEP" in a list of tools
    endless       whether every page of the list is followed by another
    flood         bytes of standard error in the middle of every call
    version, instructions   what it says of itself
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

given = sys.argv[1]
config = json.loads(pathlib.Path(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given)
era = config.get("era", "old")
streams = []
opened = []
waiting = []
pages = config.get("pages") or [config.get("tools", [])]


def write(text):
    sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    sys.stdout.buffer.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def wait_for(file):
    while not pathlib.Path(file).exists():
        time.sleep(0.01)


def record(line):
    if "record" in config:
        with pathlib.Path(config["record"]).open("a", encoding="utf-8") as file:
            file.write(line.rstrip("\n") + "\n")


def begin():
    if config.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pids = [os.getpid()]
    for _ in range(config.get("children", 0)):
        command = [sys.executable, "-S", "-E", "-c", "import time; time.sleep(300)"]
        pids.append(subprocess.Popen(command, start_new_session=config.get("own_group", False)).pid)
    if "pids" in config:
        draft = pathlib.Path(config["pids"] + ".new")
        draft.write_text(json.dumps(pids))
        draft.replace(config["pids"])
    if "stderr" in config:
        sys.stderr.write(config["stderr"])
        sys.stderr.flush()
    for line in config.get("noise", []):
        write(line + "\n")
    if "start_when" in config:
        wait_for(config["start_when"])


def about():
    if config.get("bare"):
        return {}
    return {"capabilities": {"tools": {"listChanged": True}}, "instructions": config.get("instructions", "A test.")}


def listed(params):
    cursor = params.get("cursor", "0")
    number = int(cursor) % len(pages)
    page = pages[number]
    if isinstance(page, dict):
        return page
    result = {"tools": page}
    if "ttl" in config:
        result["ttlMs"] = config["ttl"]
    if config.get("endless"):
        result["nextCursor"] = str(int(cursor) + 1)
    elif number + 1 < len(pages):
        result["nextCursor"] = str(number + 1)
    return result


def answer(message):
    method, params, identity = message["method"], message.get("params") or {}, message.get("id")
    if identity is None:
        return
    while waiting and may_grant():
        grant(waiting.pop())
    if method == "server/discover":
        probe = config.get("probe")
        if probe == "dies":
            sys.exit(1)
        if probe == "silent":
            return
        if probe:
            time.sleep(probe)
        if era == "new":
            send({"id": identity, "result": {"supportedVersions": ["2026-07-28"], **about(), **complete()}})
        else:
            send({"id": identity, "error": {"code": -32601, "message": "Method not found"}})
    elif method == "initialize" and era != "new":
        version = config.get("version", params["protocolVersion"])
        info = {} if config.get("bare") else {"serverInfo": {"name": "scripted", "version": "1"}}
        send({"id": identity, "result": {"protocolVersion": version, **info, **about()}})
    elif method == "tools/list":
        text = json.dumps({"jsonrpc": "2.0", "id": identity, "result": {**complete(), **listed(params)}})
        deep = config.get("deep", 0)
        write(text.replace('"DEEP"', "[" * deep + "]" * deep) + "\n")
    elif method == "subscriptions/listen" and "listen" in config:
        if not opened or may_grant():
            grant(identity)
        elif "refusal" in config:
            send({"id": identity, "error": config["refusal"]})
        else:
            waiting.append(identity)
    elif method == "tools/call":
        call(identity, params)
    elif method == "ping":
        send({"id": identity, "result": {}})
    else:
        send({"id": identity, "error": {"code": -32601, "message": "Method not found"}})


def may_grant():
    return "grant_when" not in config or pathlib.Path(config["grant_when"]).exists()


def grant(identity):
    stamp = {"io.modelcontextprotocol/subscriptionId": identity}
    granted = {"toolsListChanged": True} if config["listen"] else {}
    acknowledged = "notifications/subscriptions/acknowledged"
    send({"method": acknowledged, "params": {"_meta": stamp, "notifications": granted}})
    opened.append(identity)
    streams.append(stamp)


def complete():
    if era == "old" or config.get("bare"):
        return {}
    return {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}


def call(identity, params):
    default = [{"result": {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}}]
    sys.stderr.write("x" * config.get("flood", 0))
    sys.stderr.flush()
    for step in config.get("calls", {}).get(params["name"], default):
        if "wait" in step:
            wait_for(step["wait"])
        if "meet" in step:
            with socket.create_connection(("127.0.0.1", step["meet"])) as meeting:
                meeting.recv(1)
        if "progress" in step:
            progress(params, step["progress"], step.get("every", 0))
        if "tools" in step:
            pages[:] = [step["tools"]]
        if "notify" in step:
            send({"method": step["notify"], "params": {"_meta": streams[-1]} if streams else {}})
        if "hang_up" in step:
            identity_of_stream = streams.pop()["io.modelcontextprotocol/subscriptionId"]
            send({"method": "notifications/cancelled", "params": {"requestId": identity_of_stream}})
        if "ask" in step:
            send({"id": "from-server", "method": step["ask"], "params": step.get("params", {})})
            reply = sys.stdin.readline()
            record(reply)
            progress(params, step.get("then", 0))
            send({"id": identity, "result": {"content": [{"type": "text", "text": reply}]}})
        if "input" in step:
            answered = "inputResponses" in params or "requestState" in params
            told = {key: params.get(key) for key in ("inputResponses", "requestState")}
            text = {"content": [{"type": "text", "text": json.dumps(told)}]}
            result = text if answered else {"resultType": "input_required", **step["input"]}
            send({"id": identity, "result": {**complete(), **result}})
        if "line" in step:
            write(step["line"].replace("%ID%", json.dumps(identity)) + "\n")
        if "bytes" in step:
            write(bytes.fromhex(step["bytes"]).replace(b"%ID%", json.dumps(identity).encode()) + b"\n")
        if "fill" in step or "environment" in step:
            text = "x" * step["fill"] if "fill" in step else json.dumps(dict(os.environ))
            send({"id": identity, "result": {**complete(), "content": [{"type": "text", "text": text}]}})
        if "result" in step:
            result = step["result"]
            send({"id": identity, "result": {**complete(), **result} if isinstance(result, dict) else result})
        if "error" in step:
            send({"id": identity, "error": step["error"]})
        if "signal" in step:
            os.kill(os.getpid(), step["signal"])
        if "exit" in step:
            sys.stderr.write("about to end\n")
            sys.exit(step["exit"])


def progress(params, count, every=0):
    token = params["_meta"]["progressToken"] if count else None
    for number in range(count):
        time.sleep(every)
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": number + 1}})


def main():
    begin()
    for line in sys.stdin:
        record(line)
        message = json.loads(line)
        if "method" in message:
            answer(message)
    while config.get("stays"):
        time.sleep(60)


main()
