# SPDX-License-Identifier: Apache-2.0
"""What real clients make of our DNS answers: dnspython's strict parser, and dig.

The server is dns_server.c: lib/wire/dns with a policy of three lines, on loopback."""
import os
import re
import socket
import struct
import subprocess

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.reversename
import pytest

WAIT = 5
ALL_TYPES = [t for t in range(1, 128)
             if t != dns.rdatatype.OPT] + [256, 257, 258, 259, 32768, 32769, 65280]


@pytest.fixture(scope="module", name="port")
def fixture_port():
    with subprocess.Popen([os.environ["SBX_TEST_DNS_SERVER"]], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          text=True) as server:
        yield int(server.stdout.readline())
        server.stdin.close()
        assert server.wait(WAIT) == 0


def ask(port, name, kind="A", tcp=False, edns=0, **options):
    query = dns.message.make_query(name, kind, use_edns=edns, **options)
    # Its own checks: same id, same question, nothing after the message, every record well-formed.
    if tcp:
        return dns.query.tcp(query, "127.0.0.1", port=port, timeout=WAIT)
    return dns.query.udp(query, "127.0.0.1", port=port, timeout=WAIT, raise_on_truncation=True)


def exchange(port, message):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(WAIT)
        s.connect(("127.0.0.1", port))
        s.send(message)
        return s.recv(65536)


def errors(answer):
    return [o for o in answer.options if o.otype == dns.edns.OptionType.EDE]


def dig(port, *args):
    done = subprocess.run(["dig", "@127.0.0.1", "-p", str(port), "+tries=1", f"+time={WAIT}",
                           *args],
                          capture_output=True, text=True, timeout=2 * WAIT, check=False)
    assert "WARNING" not in done.stdout and "malformed" not in done.stdout, done.stdout
    return done.stdout


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("edns", [False, 0])
def test_allowed_name_has_both_addresses(port, tcp, edns):
    for kind, start in (("A", ("198.18.", "198.19.")), ("AAAA", "fd5b:7862:19d3:1:")):
        answer = ask(port, "www.allowed.test", kind, tcp, edns)
        assert answer.rcode() == dns.rcode.NOERROR and len(answer.answer) == 1
        (rrset,) = answer.answer
        assert rrset.ttl == 60 and rrset[0].address.startswith(start)
        assert answer.flags & dns.flags.RA and answer.flags & dns.flags.QR
        assert answer.edns == (-1 if edns is False else 0)


def test_same_name_same_address_whatever_its_case(port):
    first = ask(port, "stable.allowed.test").answer[0][0].address
    assert ask(port, "STABLE.allowed.TEST").answer[0][0].address == first
    assert ask(port, "other.allowed.test").answer[0][0].address != first


def test_case_of_the_question_is_echoed(port):
    query = dns.message.make_query("wWw.AlLoWeD.tEsT", "A").to_wire()
    answer = exchange(port, query)
    assert answer[12:12 + 22] == query[12:12 + 22] and b"\x03wWw\x07AlLoWeD\x04tEsT\x00" in answer


def test_reverse_of_our_own_addresses(port):
    for kind in ("A", "AAAA"):
        address = ask(port, "back.allowed.test", kind).answer[0][0].address
        answer = ask(port, dns.reversename.from_address(address), "PTR")
        assert answer.answer[0][0].target == dns.name.from_text("back.allowed.test")
    for address in ("127.0.0.1", "10.0.0.1", "198.18.0.1", "::1", "fd5b:7862:19d3:1::ff"):
        answer = ask(port, dns.reversename.from_address(address), "PTR")
        assert answer.rcode() == dns.rcode.NXDOMAIN and errors(answer)[0].code == 15


def test_every_type_of_an_allowed_name(port):
    for kind in ALL_TYPES:
        answer = ask(port, "www.allowed.test", kind)
        assert answer.rcode() == dns.rcode.NOERROR, kind
        assert bool(answer.answer) == (kind in (dns.rdatatype.A, dns.rdatatype.AAAA)), kind
        assert len(answer.authority) == (0 if answer.answer else 1), kind


def test_every_type_of_a_denied_name(port):
    for kind in ALL_TYPES:
        answer = ask(port, "www.denied.test", kind)
        assert answer.rcode() == dns.rcode.NXDOMAIN and not answer.answer, kind
        (soa,) = answer.authority
        assert soa.rdtype == dns.rdatatype.SOA and soa.ttl == 5 and soa[0].minimum == 5, kind
        (error,) = errors(answer)
        assert error.code == 15 and error.text.startswith(
            "no rule allows www.denied.test \u2013 try:"), kind


def test_any_is_minimal_and_transfers_are_refused(port):
    answer = ask(port, "www.allowed.test", "ANY")
    assert [r.rdtype for r in answer.answer] == [dns.rdatatype.A]
    for kind in ("AXFR", "IXFR", "TKEY", "MAILB"):
        query = dns.message.make_query("allowed.test", kind)
        assert dns.message.from_wire(exchange(port, query.to_wire())).rcode() == dns.rcode.REFUSED
    chaos = dns.message.make_query("version.bind", "TXT", dns.rdataclass.CH, use_edns=0)
    answer = dns.message.from_wire(exchange(port, chaos.to_wire()))
    assert answer.rcode() == dns.rcode.REFUSED and errors(answer)[0].code == 18


def test_no_error_option_without_edns(port):
    answer = ask(port, "www.denied.test", edns=False)
    assert answer.rcode() == dns.rcode.NXDOMAIN and answer.edns == -1


def test_undecided_says_later(port):
    answer = ask(port, "later.test")
    assert answer.rcode() == dns.rcode.SERVFAIL and errors(answer)[0].code == 14


def test_do_bit_is_echoed_and_version_1_refused(port):
    assert ask(port, "www.allowed.test", want_dnssec=True).ednsflags & dns.flags.DO
    query = bytearray(dns.message.make_query("www.allowed.test", "A", use_edns=0).to_wire())
    query[-5] = 1
    answer = dns.message.from_wire(exchange(port, bytes(query)))
    assert answer.rcode() == dns.rcode.BADVERS and answer.edns == 0
    assert "status: BADVERS" in dig(port, "+edns=1", "+noednsnegotiation", "www.allowed.test")


def test_small_clients_get_small_answers(port):
    name = ".".join(["a" * 63] * 3 + ["b" * 61])
    for size in (0, 512, 600, 1232, 4096):
        query = dns.message.make_query(name, "A", use_edns=0, payload=size).to_wire()
        wire = exchange(port, query)
        answer = dns.message.from_wire(wire)
        assert len(wire) <= max(size, 512) and answer.rcode() == dns.rcode.NXDOMAIN
        assert errors(answer)[0].text.startswith("no rule allows")


def test_names_that_are_no_host_names(port):
    for label in (b"a\0b", b"a.b", b"a b", b"\xff", b"*", b"a/b"):
        answer = ask(port, dns.name.Name([label, b"allowed", b"test", b""]))
        assert answer.rcode() == dns.rcode.NXDOMAIN and errors(answer)[0].text == "not a host name"


def test_root_is_not_denied(port):
    assert ask(port, ".", "NS").rcode() == dns.rcode.NOERROR


def test_broken_messages(port):
    good = dns.message.make_query("www.allowed.test", "A").to_wire()
    for broken in (good + b"x", good[:-1], good[:12], good[:4] + b"\0\2" + good[6:],
                   good[:12] + b"\xc0\x0c" + good[-4:]):
        answer = exchange(port, broken)
        assert answer[:2] == broken[:2] and answer[3] & 15 == dns.rcode.FORMERR
    update = struct.pack(">H", 0x2800)
    assert exchange(port, good[:2] + update + good[4:])[3] & 15 == dns.rcode.NOTIMP


def test_responses_and_scraps_go_unanswered(port):
    good = dns.message.make_query("www.allowed.test", "A").to_wire()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(WAIT)
        s.connect(("127.0.0.1", port))
        for silent in (b"", good[:11], good[:2] + b"\x81\x80" + good[4:]):
            s.send(silent)
        s.send(b"\xab\xcd" + good[2:])
        assert s.recv(4096)[:2] == b"\xab\xcd"


def test_many_on_one_tcp_connection(port):
    query = dns.message.make_query("www.allowed.test", "A").to_wire()
    framed = struct.pack(">H", len(query)) + query
    with socket.create_connection(("127.0.0.1", port), WAIT) as s:
        s.sendall(framed * 20)
        s.shutdown(socket.SHUT_WR)
        data = b""
        while piece := s.recv(65536):
            data += piece
    seen = 0
    while data:
        (n,) = struct.unpack(">H", data[:2])
        assert dns.message.from_wire(data[2:2 + n]).answer
        data, seen = data[2 + n:], seen + 1
    assert seen == 20


@pytest.mark.parametrize("tcp", ["+tcp", "+notcp"])
def test_dig_understands_it(port, tcp):
    out = dig(port, tcp, "www.allowed.test", "A")
    assert "status: NOERROR" in out and re.search(
        r"^www\.allowed\.test\.\s+60\s+IN\s+A\s+198\.1[89]\.", out, re.M)
    out = dig(port, tcp, "www.denied.test", "HTTPS")
    assert "status: NXDOMAIN" in out and "EDE: 15 (Blocked): (no rule allows www.denied.test" in out
    assert "gateway.sbx.internal. nobody.invalid. 1 3600 600 86400 5" in out
    assert "status: NOERROR" in dig(port, tcp, "www.allowed.test", "HTTPS", "+dnssec")
    assert "EDE: 14 (Not Ready)" in dig(port, tcp, "later.test")
    assert "status: NXDOMAIN" in dig(port, tcp, "+noedns", "www.denied.test")


def test_dig_reverse_and_cookies(port):
    address = ask(port, "dig.allowed.test").answer[0][0].address
    assert "dig.allowed.test." in dig(port, "+short", "-x", address)
    assert "status: NOERROR" in dig(port, "+cookie", "+nsid", "+padding=128", "+subnet=0/0",
                                    "dig.allowed.test")
