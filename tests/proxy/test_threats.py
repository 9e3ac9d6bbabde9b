# SPDX-License-Identifier: Apache-2.0
"""What broke in other sandboxes and proxies, one test each, named after it. The real edge and
egress, no VM.

Of the same catalogue, elsewhere: the packets of denied names (net_names.py), spellings of addresses
(net_addresses.py), floods (net_floods.py), smuggling (net_smuggling.py), rules and names alone
(lib/rules/policy/test/policy_test.c, lib/rules/policy/test/host_test.c).
"""
import contextlib
import ctypes
import ctypes.util
import os
import pathlib
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rigs"))
import rig  # noqa: E402
from net_floods import END_HEADERS, HEADERS, PREFACE, RST, SETTINGS, frame, head

ALLOWED = "allowed.test"
ALERT = b"\x15"


class World:
    """A rig with one allowed host on 80, 443 and 2222, and its servers."""

    def __init__(self):
        self.http = rig.Listener(0, rig.http_ok, "127.0.0.1")
        self.echo = rig.Listener(0, rig.echo, "127.0.0.1")
        self.pins = {f"{ALLOWED}:80": f"127.0.0.1:{self.http.port}"}
        for host in (ALLOWED, "other.test"):
            for port in (443, 22, 9999, 2222):
                self.pins[f"{host}:{port}"] = f"127.0.0.1:{self.echo.port}"
        self.pins["other.test:80"] = f"127.0.0.1:{self.http.port}"
        self.policy = [f"allow network {ALLOWED}", f"allow network {ALLOWED}:2222"]
        self.rig = rig.Rig(self.policy, self.pins)

    def connections(self):
        return self.http.count + self.echo.count

    def settle(self):
        """Connections of the test before may be on their way still."""
        end, count, before = time.monotonic() + rig.WAIT, -1, -2
        while count != before:
            assert time.monotonic() < end, "connections keep coming"
            before, count = count, self.connections()
            time.sleep(0.05)

    def address(self, name=ALLOWED):
        with self.rig.dns() as dns:
            found = dns.lookup(name)
        return found[0] if found else None

    def close(self):
        self.rig.close()
        self.http.close()
        self.echo.close()


@pytest.fixture(scope="module", name="shared")
def fixture_shared():
    made = World()
    yield made
    made.close()


@pytest.fixture(name="world")
def fixture_world(shared):
    shared.settle()
    return shared


@pytest.fixture(name="fresh")
def fixture_fresh():
    made = World()
    yield made
    made.close()


def status(data):
    words = data.split(b"\r\n")[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def hello(name, alpn=None):
    """A real ClientHello with this server name, or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(alpn)
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(into, out, server_hostname=name).do_handshake()
    return out.read()


def with_extension(message, kind, data):
    """The same ClientHello with one more extension in front."""
    body = bytearray(message[9:])
    at = 34
    at += 1 + body[at]
    at += 2 + struct.unpack_from(">H", body, at)[0]
    at += 1 + body[at]
    n = struct.unpack_from(">H", body, at)[0]
    more = struct.pack(">HH", kind, len(data)) + data
    body[at:at + 2] = struct.pack(">H", n + len(more))
    body[at + 2:at + 2] = more
    return b"\x16\x03\x01" + struct.pack(">H",
                                         len(body)
                                         + 4) + b"\x01" + struct.pack(">I",
                                                                      len(body))[1:] + bytes(body)


def http(world, head, via="proxy", address=None):
    with world.rig.proxy() if via == "proxy" else world.rig.tcp(address or world.address(),
                                                                80) as stream:
        stream.send(head if isinstance(head, bytes) else head.encode("latin-1"))
        return stream.until(b"\r\n\r\n"), stream


def tunnelled(world, target, first):
    """Bytes that come back through a tunnel to the echo server, "" when it was cut, with or without
    a TLS alert."""
    head, stream = world.rig.connect(target)
    with stream:
        if status(head) != 200:
            return head
        stream.send(first)
        got = stream.exactly(len(first))
        return b"" if got[:1] == ALERT else got


# --- names ---

def test_cve_2026_12039_the_resolver_ignored_the_policy(world):
    """Docker sbx: denied names still resolved, so DNS was a way out."""
    with world.rig.dns() as udp, world.rig.dns(tcp=True) as tcp:
        for dns in (udp, tcp):
            for kind in (1, 28, 12, 16, 10, 64, 65, 255):
                for name in ("secret.denied.test", "a" * 63 + ".denied.test",
                             "4.3.2.1.in-addr.arpa", "_x._tcp.denied.test"):
                    answer = dns.ask(rig.query(name, kind))
                    assert rig.rcode(answer) == 3 and not rig.addresses(answer), (name, kind)
        assert udp.lookup(ALLOWED) and tcp.lookup(ALLOWED, "AAAA")


def test_dzone_blocked_names_still_resolved(world):
    assert world.address("blocked.test") is None
    assert world.address().startswith("198.1")


@pytest.mark.parametrize("where", ["connect", "url", "host", "sni"])
def test_sandbox_runtime_nul_byte_in_a_host_name(world, where):
    """attacker<NUL>.allowed ended in the allowed name for the check, and at the NUL for the
    resolver."""
    forms = (b"evil.test%c.allowed.test", b"allowed.test%c", b"%callowed.test", b"allow%ced.test",
             b"allowed.test%cevil.test")
    for byte in range(256):
        for form in forms if byte in b"\0\x01\t .%\\_*,;&[]()\x7f\x80\xad\xff" else (
                forms[byte % 5],):
            text = form % byte
            if text.lower().rstrip(b".") == ALLOWED.encode() or text.endswith(
                    (b":", b"/", b"?", b"#", b"\r", b"\n", b" ", b"\t", b"@")):
                continue
            count = world.connections()
            if where == "connect":
                answer, stream = http(world,
                                      b"CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n"
                                      % (text, text))
            elif where == "url":
                answer, stream = http(world,
                                      b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (text, text))
            elif where == "host":
                answer, stream = http(world, b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % text, "caught",
                                      world.address())
            else:
                answer, stream = sni(world, text)
            # A tunnel is open before its first bytes are inspected.
            if status(answer) == 200 or (where != "sni" and world.connections() != count):
                assert is_same_host(text, where), (where, text, answer)
            stream.close()


def is_same_host(text, where):
    """Spellings that are the allowed host to every reader: with a port, with a path, with blanks
    around it."""
    text = text.strip(b" \t").lower()
    return text.split(b"/")[0].split(b"?")[0] in (ALLOWED.encode(), ALLOWED.encode() + b":80")


def sni(world, name):
    """A hello with these bytes as server name, by patching one of the same length."""
    if not 1 <= len(name) <= 60:
        name = b"x"
    message = hello("x" * (len(name) - 5) + ".test" if len(name) > 6 else "x" * len(name))
    message = message.replace(("x" * (len(name) - 5) + ".test" if len(name) > 6
                               else "x" * len(name)).encode(), name)
    head, stream = world.rig.connect(f"{ALLOWED}:443")
    assert status(head) == 200
    stream.send(message)
    got = stream.exactly(1)
    return (b"HTTP/1.1 200 \r\n" if got not in (b"", ALERT) else b""), stream


# --- ports and payloads ---

@pytest.mark.parametrize("port", [22, 9999, 25, 853, 8443, 0, 65536])
def test_dzone_connect_reached_other_ports_of_an_allowed_host(world, port):
    count = world.connections()
    head, stream = world.rig.connect(f"{ALLOWED}:{port}")
    stream.close()
    assert status(head) in (400, 403) and world.connections() == count
    if 0 < port < 65536:
        with world.rig.tcp(world.address(), port) as caught:
            caught.send(b"hello")
            assert caught.rest() == b"" and caught.ending() == "reset"
        assert world.connections() == count


def test_dzone_a_port_works_when_a_rule_names_it(world):
    assert tunnelled(world, f"{ALLOWED}:2222", b"SSH-2.0-x\r\n") == b"SSH-2.0-x\r\n"


@pytest.mark.parametrize("first", [b"SSH-2.0-x\r\n", b"\0\0\0\1", b"\x05\x01\x00", b"EHLO x\r\n"])
def test_dzone_connect_payload_on_443_must_be_tls_or_http(world, first):
    assert tunnelled(world, f"{ALLOWED}:443", first) == b""


def test_dzone_a_refusal_does_not_look_like_success(world):
    """curl ended with 0: CONNECT must be answered 403, a plain request 403 with the words."""
    head, stream = world.rig.connect("blocked.test:443")
    stream.close()
    assert status(head) == 403
    with world.rig.proxy() as stream:
        stream.send(
            b"GET http://blocked.test/ HTTP/1.1\r\nHost: blocked.test\r\nConnection: close\r\n\r\n")
        answer = stream.rest()
    assert status(
        answer) == 403 and b"Blocked by network policy" in answer and b"blocked.test:80" in answer


# --- one path for forward and transparent ---

def test_sbx_240_forward_and_transparent_gave_different_verdicts(world):
    request = "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n"
    for host, expected in ((ALLOWED, 200), ("other.test", 403)):
        answer, stream = http(world, request.format(f"http://{host}/", host))
        stream.close()
        assert status(answer) == expected
    answer, stream = http(world, request.format("/", ALLOWED), "caught")
    stream.close()
    assert status(answer) == 200
    answer, stream = http(world, request.format("/", "other.test"), "caught")
    stream.close()
    assert status(answer) in (403, 421)


def test_sandbox_runtime_plain_http_was_not_filtered(world):
    for address in ("93.184.216.34", "2606:2800:220:1::1"):
        answer, stream = http(world, "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n", "caught", address)
        stream.close()
        assert status(answer) in (0, 403, 421)
    answer, stream = http(world, "GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
    stream.close()
    assert status(answer) == 403


@pytest.mark.parametrize("text",
                         ["", "policy 1\n", "policy 1\nend", "policy 1\nallow network **\n",
                          "policy 1\nallow netwrok **\nend\n",
                                  "policy 3\nallow network **\nend\n", "\0"])
def test_sandbox_runtime_an_empty_list_allowed_everything(text):
    """Empty, cut off or broken: everything is denied."""
    with rig.Listener(0, rig.http_ok, "127.0.0.1") as listener:
        box = rig.Rig("allow network a.test", {"a.test:80": f"127.0.0.1:{listener.port}"})
        with box:
            box.policy.write_text(text)
            box.command("reload")
            time.sleep(0.2)
            with box.proxy() as stream:
                stream.send(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
                assert status(stream.until(b"\r\n\r\n")) == 403
            assert listener.count == 0


# --- fronting ---

@pytest.mark.parametrize("name", ["other.test", "www.allowed.test", "allowed.test.evil.test", None])
def test_domain_fronting_by_server_name(world, name):
    assert tunnelled(world, f"{ALLOWED}:443", hello(name)) == b""


def test_server_name_of_the_target_passes(world):
    message = hello(ALLOWED)
    assert tunnelled(world, f"{ALLOWED}:443", message) == message
    message = hello(ALLOWED.upper())
    assert tunnelled(world, f"{ALLOWED}:443", message) == message


class Client:
    """TLS by libssl itself, through a stream: the ssl module has no way to change the name between
    two ClientHellos."""

    SET_NAME = 55  # SSL_CTRL_SET_TLSEXT_HOSTNAME

    def __init__(self, stream, name):
        self.lib, self.stream = ctypes.CDLL(ctypes.util.find_library("ssl")), stream
        for f in ("TLS_client_method", "SSL_CTX_new", "SSL_new", "BIO_new", "BIO_s_mem"):
            getattr(self.lib, f).restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(
            self.lib.SSL_CTX_new(ctypes.c_void_p(self.lib.TLS_client_method())))
        self.ssl = ctypes.c_void_p(self.lib.SSL_new(self.context))
        self.into, self.out = (
            ctypes.c_void_p(self.lib.BIO_new(ctypes.c_void_p(self.lib.BIO_s_mem())))
            for _ in range(2))
        self.lib.SSL_set_bio(self.ssl, self.into, self.out)
        self.lib.SSL_set_connect_state(self.ssl)
        self.name(name)

    def name(self, name):
        assert self.lib.SSL_ctrl(self.ssl, self.SET_NAME, 0, ctypes.c_char_p(name.encode())) == 1

    def step(self):
        """The next bytes of the client; b"" after the handshake, or if it failed."""
        self.lib.SSL_do_handshake(self.ssl)
        buf = ctypes.create_string_buffer(65536)
        n = self.lib.BIO_read(self.out, buf, len(buf))
        return buf.raw[:max(n, 0)]

    def shake(self, second):
        """Whether the handshake succeeds, with this name from the second ClientHello on."""
        self.stream.send(self.step())
        self.name(second)
        while True:
            data = self.stream.recv()
            if not data:
                return False
            self.lib.BIO_write(self.into, data, len(data))
            self.stream.send(self.step())
            if self.lib.SSL_is_init_finished(self.ssl):
                return True

    def close(self):
        self.lib.SSL_free(self.ssl)
        self.lib.SSL_CTX_free(self.context)


@contextlib.contextmanager
def retrying_server(folder):
    """A server of OpenSSL that accepts only keys of P-256, and therefore requires a second
    ClientHello of every client. Also the names that it saw."""
    key, cert, names = folder / "key.pem", folder / "cert.pem", []
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=front.test",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.set_ecdh_curve("prime256v1")
    context.sni_callback = lambda _conn, name, _context: names.append(name)

    def talk(conn):
        with contextlib.suppress(ssl.SSLError), context.wrap_socket(conn, server_side=True) as tls:
            tls.recv(1)

    with rig.Listener(0, talk, "127.0.0.1") as server:
        yield server, names


@pytest.mark.parametrize("second, passes", [(ALLOWED, True), ("other.test", False)])
def test_domain_fronting_by_the_second_client_hello(tmp_path, second, passes):
    """A server that answers with HelloRetryRequest takes the name from the ClientHello after it."""
    with retrying_server(tmp_path) as (server,
                                       names), rig.Rig([f"allow network {ALLOWED}"],
                                                       {
        f"{ALLOWED}:443": f"127.0.0.1:{server.port}"}) as box:
        head, stream = box.connect(f"{ALLOWED}:443")
        assert status(head) == 200
        with stream:
            client = Client(stream, ALLOWED)
            assert client.shake(second) == passes
            client.close()
        assert ALLOWED in names and "other.test" not in names


@pytest.mark.parametrize("host", ["other.test", "allowed.test:81", "www.allowed.test", ""])
def test_domain_fronting_by_host_header(world, host):
    for head, via in ((f"GET http://{ALLOWED}/ HTTP/1.1\r\nHost: {host}\r\n\r\n", "proxy"),
                      (f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n", "caught")):
        count = world.connections()
        answer, stream = http(world, head, via)
        stream.close()
        assert status(answer) in (400, 403, 421) and world.connections() == count


def test_domain_fronting_on_a_later_request_of_the_connection(world):
    """Every request of a connection is checked, not only the first."""
    with world.rig.tcp(world.address(), 80) as stream:
        stream.send(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
        first = stream.until(b"\r\n\r\n")
        assert status(first) == 200
        body = stream.exactly(int([x for x in first.lower().split(b"\r\n")
                                   if x.startswith(b"content-length")][0].split(b":")[1]))
        assert b"allowed.test" in body
        stream.send(b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")
        assert status(stream.until(b"\r\n\r\n")) in (400, 403, 421)


@pytest.mark.parametrize("kind", [0xfe0d, 0xffce, 0xfe08, 0xfe09, 0xfe0a])
def test_encrypted_client_hello_hides_the_name(world, kind):
    outer = b"\0\0\1\0\1\7\0\x20" + bytes(32) + b"\0\x10" + bytes(16)
    message = with_extension(hello(ALLOWED), kind, outer)
    assert tunnelled(world, f"{ALLOWED}:443", message) == b""


def test_ech_keys_are_not_given_out(world):
    with world.rig.dns() as dns:
        for kind in (64, 65):
            answer = dns.ask(rig.query(ALLOWED, kind))
            assert rig.rcode(answer) == 0 and answer[6:8] == b"\0\0"


def test_dns_over_tls_and_https_to_public_resolvers_are_refused(world):
    for target in ("1.1.1.1:853", "8.8.8.8:443", "dns.google:443", "[2606:4700:4700::1111]:853"):
        head, stream = world.rig.connect(target)
        stream.close()
        assert status(head) == 403


# --- addresses ---

def test_cve_2026_43929_metadata_by_its_embeddings():
    with rig.Rig(["allow network **"]) as box:
        for text in ("169.254.169.254", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]",
                     "[2002:a9fe:a9fe::1]", "2852039166", "0xa9fea9fe",
                     "0251.0376.0251.0376", "[::a9fe:a9fe]"):
            with box.proxy() as stream:
                stream.send(
                    f"GET http://{text}/latest/meta-data/ HTTP/1.1\r\n"
                    f"Host: {text}\r\n\r\n".encode())
                assert status(stream.until(b"\r\n\r\n")) in (400, 403), text
        assert box.stats()["outcomes"].get("connected", 0) == 0


# --- after a fault the same rules hold ---

def verdicts(world):
    found = []
    for target in (f"{ALLOWED}:443", f"{ALLOWED}:22", "other.test:443", "127.0.0.1:443",
                   "[::1]:443", "169.254.169.254:80"):
        head, stream = world.rig.connect(target)
        stream.close()
        found.append(status(head))
    found.append(world.address() is not None)
    found.append(world.address("other.test") is None)
    return found


EXPECTED = [200, 403, 403, 403, 403, 403, True, True]


@pytest.mark.parametrize("who", ["edge", "egress", "both"])
def test_cve_2026_12539_rules_were_lost_by_a_restart(fresh, who):
    """Docker sbx: a block held only until the daemon started again."""
    assert verdicts(fresh) == EXPECTED
    stats = fresh.rig.stats()
    for name in ("edge", "egress"):
        if who in (name, "both"):
            os.kill(stats[name]["pid"], signal.SIGKILL)
            until(lambda n=name: fresh.rig.stats()[n]["starts"] == 2)
    fresh.rig.until_up()
    assert verdicts(fresh) == EXPECTED
    fresh.rig.reload(fresh.policy + [f"deny network {ALLOWED}"])
    assert verdicts(fresh) == [403, 403, 403, 403, 403, 403, False, True]


def until(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("never came true")


@pytest.mark.parametrize("who", ["edge", "egress"])
def test_kill_9_in_the_middle_of_a_transfer(fresh, who):
    """The connection is reset, the next one works."""
    head, stream = fresh.rig.connect(f"{ALLOWED}:2222")
    assert status(head) == 200
    stream.send(b"\0" * 100000)
    assert stream.exactly(1000) == b"\0" * 1000
    pid = fresh.rig.stats()[who]["pid"]
    os.kill(pid, signal.SIGKILL)
    stream.rest()
    until(lambda: stream.ending() == "reset")
    until(lambda: fresh.rig.stats()[who]["pid"] not in (pid, -1, 0))  # the end was seen
    fresh.rig.until_up()
    assert tunnelled(fresh, f"{ALLOWED}:2222", b"\0again") == b"\0again"


@pytest.mark.parametrize("end", ["closed", "reset"])
def test_an_end_that_is_none_looked_like_one(end):
    """A transfer that was cut must not look whole to the guest; one that ended must not look
    cut."""
    def talk(conn):
        conn.recv(1)
        conn.sendall(b"half")
        if end == "reset":
            time.sleep(0.2)
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with rig.Listener(0, talk, "127.0.0.1") as listener, \
            rig.Rig("allow network a.test:9000",
                    {"a.test:9000": f"127.0.0.1:{listener.port}"}) as box:
        _, stream = box.connect("a.test:9000")
        stream.send(b"\0")
        assert stream.rest() == b"half"
        if end == "closed":
            assert stream.ending() == "open"
            stream.half_close()
        until(lambda: stream.ending() == ("end" if end == "closed" else "reset"))


ANSWERS = {"length": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
           "in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
           "after a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"}


@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("how", ["origin", "egress"])
def test_an_answer_that_was_cut_looked_whole(answer, how, version):
    """The guest must see it: by the length, by the last chunk that is missing, or by a reset when
    there is neither."""
    held = threading.Event()

    def talk(conn):
        conn.recv(65536)
        conn.sendall(ANSWERS[answer])
        if how == "egress":
            held.wait(rig.WAIT)
    with rig.Listener(0, talk, "127.0.0.1") as listener, \
            rig.Rig("allow network a.test",
                    {"a.test:80": f"127.0.0.1:{listener.port}"}) as box, box.proxy() as stream:
        stream.send(f"GET http://a.test/ HTTP/{version}\r\nHost: a.test\r\n\r\n".encode())
        head = stream.until(b"\r\n\r\n").lower()
        if how == "origin" and not head:  # the reset can overtake everything that came before it
            until(lambda: stream.ending() == "reset")
            return
        assert b" 200 " in head
        stream.until(b"half")
        if how == "egress":
            os.kill(box.stats()["egress"]["pid"], signal.SIGKILL)
        assert stream.rest() in (b"", b"\r\n")
        held.set()
        if b"content-length: 100" not in head and b"transfer-encoding: chunked" not in head:
            until(lambda: stream.ending() == "reset")


def test_a_deny_reaches_an_open_connection(fresh):
    head, stream = fresh.rig.connect(f"{ALLOWED}:2222")
    assert status(head) == 200
    stream.send(b"\0x")
    assert stream.exactly(2) == b"\0x"
    fresh.rig.reload([f"deny network {ALLOWED}"])
    assert stream.rest() == b""


# --- leaks ---

def test_sbx_0_38_hijacked_connect_leaked(fresh):
    """Connections that are dropped at any point leave nothing behind."""
    def round_of(n):
        for i in range(n):
            head, stream = fresh.rig.connect(f"{ALLOWED}:2222") if i % 3 else fresh.rig.connect(
                "blocked.test:443")
            if i % 2:
                stream.send(b"\0" * 1000)
            stream.close()
        until(lambda: fresh.rig.stats()["closed"] == fresh.rig.stats()["opens"])
        return fresh.rig.stats()
    first, second = round_of(100), round_of(300)
    assert second["edge"]["anon_kib"] - first["edge"]["anon_kib"] < 512
    assert second["egress"]["anon_kib"] - first["egress"]["anon_kib"] < 512
    assert second["edge"]["starts"] == second["egress"]["starts"] == 1


def test_sbx_0_37_1_the_proxy_listened_on_loopback(world):
    """No process of sbx listens on an address: other users of the host could use it."""
    pids = [world.rig.process.pid, world.rig.stats()["edge"]["pid"],
            world.rig.stats()["egress"]["pid"]]
    inodes = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as rows:
            inodes |= {(f[9], f[1]) for f in (row.split() for row in list(rows)[1:])
                       if f[3] == ("0A" if table.startswith("tcp") else "07")}
    ours = set()
    for pid in pids:
        with contextlib.suppress(PermissionError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    ours.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    assert not [addr for inode, addr in inodes if f"socket:[{inode}]" in ours]


# --- the wire ---

@pytest.mark.parametrize("path",
                         ["/tcp/127.0.0.1/0", "/tcp/1.2.3/80", "/tcp/::1/99999", "/exec",
                          "/dns/udp/x", "/", "/tcp/[::1]/80"])
def test_a_path_that_is_none_is_reset(path):
    with rig.Rig("allow network **", raw=True) as box, box.wire() as wire:
        wire.send(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1,
                                                          head(path.encode())))
        data = b""
        while frame(RST, 0, 1)[3:9] not in data:
            piece = wire.recv()
            assert piece, "the connection was closed without a reset of the stream"
            data += piece
        assert box.stats()["asks"] == 0
