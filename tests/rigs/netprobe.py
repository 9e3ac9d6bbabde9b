# SPDX-License-Identifier: Apache-2.0
"""Runs inside the guest, and inside a container: tries every cell of a table and prints the results
as JSON.

usage: python3 netprobe.py DIR < table.json

DIR has ca.crt. A cell is {"id", "path": forward|transparent, "proto": http|https|tcp, "host",
"port"} and may have "sni", "header" (the Host header), "family" (4 or 6), "plain" (bytes to send
instead, in latin-1), "first" (the server speaks first). The answer is {"id": {"verdict", "how",
"ms"}}: `allowed` only if the laboratory's own answer was received, `denied` if it was denied in
one of the permitted forms, `late` on a timeout, `odd` for everything else.
Uses only Python's library, so that it also runs in a bare container.
"""
import concurrent.futures
import contextlib
import errno
import json
import socket
import ssl
import struct
import sys
import time

GATEWAY, PROXY_PORT = "gateway.docker.internal", 3128
BODY = b"hello from the laboratory"
SECONDS = 20
DENIED = {"403", "nxdomain", "reset", "refused", "eof", "tls", "filtered"}


class Refused(Exception):
    """A denial, with its form."""


def resolve(host, port, family):
    kind = {4: socket.AF_INET, 6: socket.AF_INET6}.get(family, 0)
    try:
        return socket.getaddrinfo(host, port, kind, socket.SOCK_STREAM)
    except socket.gaierror as e:
        raise Refused("nxdomain" if e.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
                      else f"dns {e}") from None


def connect(host, port, family):
    last = None
    for kind, style, proto, _, address in resolve(host, port, family):
        s = socket.socket(kind, style, proto)
        s.settimeout(SECONDS)
        # In the guest, bypasses its own check (src/guest/net/net_hold.h), to test the host's; a
        # container cannot do that.
        with contextlib.suppress(OSError):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 0x73627802)
        try:
            s.connect(address)
            return s
        except OSError as e:
            s.close()
            last = e
    raise last


def read_head(s):
    """Returns the status and the rest of the data."""
    got = b""
    while b"\r\n\r\n" not in got and len(got) < 65536:
        part = s.recv(4096)
        if not part:
            break
        got += part
    head, _, rest = got.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if not words or not words[0].startswith(b"HTTP/1."):
        raise Refused("eof" if not got else "no http")
    return words[1].decode(), rest


def read_all(s, got=b""):
    while BODY not in got and len(got) < 65536:
        part = s.recv(4096)
        if not part:
            break
        got += part
    return got


def get(s, target, header):
    s.sendall(
        f"GET {target} HTTP/1.1\r\nHost: {header}\r\nUser-Agent: netprobe\r\n"
        "Connection: close\r\n\r\n".encode())
    status, rest = read_head(s)
    if status != "200":
        raise Refused(status)
    return "200" if BODY in read_all(s, rest) else "other body"


def open_tunnel(cell):
    """Returns a byte stream to the target: through CONNECT, or direct."""
    host, port, family = cell["host"], cell["port"], cell.get("family")
    if cell["path"] == "transparent":
        return connect(host, port, family)
    s = connect(GATEWAY, PROXY_PORT, family)
    name = f"[{host}]" if ":" in host else host
    s.sendall(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
    status, rest = read_head(s)
    if status != "200":
        raise Refused(status)
    assert not rest or cell.get("first"), rest
    if rest:
        cell["early"] = rest
    return s


def try_http(cell, _):
    host, port = cell["host"], cell["port"]
    name = f"[{host}]" if ":" in host else host
    at = name if port == 80 else f"{name}:{port}"
    header = cell.get("header", at)
    if cell["path"] == "transparent":
        with connect(host, port, cell.get("family")) as s:
            return get(s, "/", header)
    with connect(GATEWAY, PROXY_PORT, cell.get("family")) as s:
        return get(s, f"http://{at}/", header)


def try_https(cell, contexts):
    sni = cell.get("sni", cell["host"])
    # With a wrong name only matters whether any server answers.
    context = contexts[sni == cell["host"] and ":" not in sni and not sni[0].isdigit()]
    with open_tunnel(cell) as s, context.wrap_socket(s, server_hostname=sni) as tls:
        return get(tls, "/", cell.get("header", cell["host"]))


def try_tcp(cell, _):
    with open_tunnel(cell) as s:
        if cell.get("first"):
            banner = cell.get("early") or s.recv(100)
            if not banner:
                raise Refused("eof")
            return "200" if banner.startswith(b"220 lab first") else "other banner"
        s.sendall(b"0123456789")
        got = b""
        while len(got) < 10:
            part = s.recv(10)
            if not part:
                raise Refused("eof")
            got += part
        return "200" if got == b"0123456789" else "other bytes"


def try_plain(cell, _):
    """Sends data that does not fit the port. A server's answer is `allowed`: one of nginx or an
    echo."""
    with open_tunnel(cell) as s:
        s.sendall(cell["plain"].encode("latin-1"))
        got = s.recv(4096)
        if not got:
            raise Refused("eof")
        if got.startswith(b"\x15\x03"):
            raise Refused("tls")  # an alert
        if not got.startswith(b"HTTP/1."):
            return "200"
        while b"\r\n\r\n" not in got and (part := s.recv(4096)):
            got += part
        if b"\r\nServer: nginx" in got:
            return "200"
        raise Refused(got.split(None, 2)[1].decode())


def how_it_went(cell, contexts):
    work = try_plain if "plain" in cell else {"http": try_http, "https": try_https,
                                              "tcp": try_tcp}[cell["proto"]]
    try:
        return work(cell, contexts)
    except Refused as e:
        return str(e)
    except ssl.SSLEOFError:
        return "eof"
    except ssl.SSLError as e:
        text = str(e).lower()
        return "tls" if any(w in text
                            for w in ("eof", "alert", "unrecognized name",
                                      "unrecognized_name")) else f"tls {e}"
    except (socket.timeout, TimeoutError):
        return "late"
    except OSError as e:
        return {errno.ECONNRESET: "reset", errno.EPIPE: "reset", errno.ECONNREFUSED: "refused",
                errno.EACCES: "filtered",
                errno.EPERM: "filtered", errno.EHOSTUNREACH: "filtered"}.get(e.errno, str(e))


def probe(cell, contexts):
    begin = time.monotonic()
    how = how_it_went(cell, contexts)
    verdict = "allowed" if how == "200" else "denied" if how in DENIED | {"400",
                                                                          "421"} else "late" if how == "late" else "odd"
    return cell["id"], {"verdict": verdict, "how": how,
                        "ms": round((time.monotonic() - begin) * 1000)}


def udp(address, port):
    """The result of a datagram: an immediate error, or nothing."""
    begin = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        try:
            s.connect((address, port))
            s.send(struct.pack("!I", 1))
            s.recv(100)
            how = "answered"
        except (socket.timeout, TimeoutError):
            how = "silence"
        except OSError as e:
            how = errno.errorcode.get(e.errno, str(e))
    return {"how": how, "ms": round((time.monotonic() - begin) * 1000)}


def main():
    table = json.load(sys.stdin)
    # Created once: reading certificates takes longer under emulation than a cell.
    contexts = {True: ssl.create_default_context(cafile=sys.argv[1] + "/ca.crt"),
                False: ssl.create_default_context(cafile=sys.argv[1] + "/ca.crt")}
    contexts[False].check_hostname = False
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = dict(pool.map(lambda cell: probe(cell, contexts), table["cells"]))
    for name, (address, port) in table.get("udp", {}).items():
        results[name] = udp(address, port)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
