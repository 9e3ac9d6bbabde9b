#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the seed corpora of the targets `origin_chan`, `vault_chan`, `run_chan`, `book`, `seal`
and `extract` below fuzz/corpus/."""
import pathlib
import struct

corpus = pathlib.Path(__file__).parent / "corpus"


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<H", len(b)) + b


def packet(kind, body=b"", ident=0):
    return struct.pack("<HHII", kind, 0, ident, len(body)) + body


def run_of(*packets):
    return b"".join(struct.pack("<H", len(p) | (0x8000 if fd else 0)) + p for p, fd in packets)


META = (text("github") + text("sandbox1") + b"\1" + text("api.example.com") + text("authorization")
        +
        text("Bearer %s") + text("GH_TOKEN") + text("gho_proxymanaged"))
REF = b"\1" + text("/usr/bin/docker-credential-pass") + b"\1" + text(
    "https://r.example.com") + struct.pack("<I", 60)
NO_REF = b"\0" + text("") + b"\0" + struct.pack("<I", 0)
HELLO = (packet(1, text("0.1.0")), 0)
ADMIN, SANDBOX = (packet(2), 0), (packet(3, text("sandbox1")), 0)
DONE = (packet(16, struct.pack("<iQ", 0, 7) + text(""), 4), 0)
ITEM = (packet(9,
               META + b"\0" + text("") + struct.pack("<IQQQQ", 0, 7, 1, 2,
                                                     3) + text("sk-") + text("abcd"), 5), 0)
vault_chan = {
    "set": run_of(HELLO, ADMIN, (packet(4, META, 4), 1), DONE),
    "set_ref": run_of(HELLO, ADMIN, (packet(5, META + REF, 4), 0), DONE),
    "remove": run_of(HELLO, ADMIN, (packet(6, text("github") + text("")), 0), DONE),
    "unlock_scan_stop": run_of(HELLO, ADMIN, (packet(7), 1), (packet(15), 1), (packet(17), 0)),
    "list": run_of(HELLO, SANDBOX, (packet(8, b"", 5), 0), ITEM, DONE),
    "release": run_of(HELLO, SANDBOX, (packet(10, text("github") + struct.pack("<Q", 7), 6), 1),
                      DONE),
    "watch": run_of(HELLO, SANDBOX, (packet(11, b"", 1), 0), (packet(12, struct.pack("<Q", 9)), 0)),
    "status": run_of(HELLO, SANDBOX, (packet(13, b"", 1), 0),
                     (packet(14, b"\1\1\1" + struct.pack("<HQ", 3, 9) + text("sealed"), 1), 0)),
    "no_role": run_of(HELLO, (packet(8, b"", 5), 0)),
    "admin_release": run_of(HELLO, ADMIN,
                            (packet(10, text("github") + struct.pack("<Q", 7), 6), 1)),
    "bad_name": run_of(HELLO, ADMIN, (packet(6, text("../x") + text("")), 0)),
    "set_no_fd": run_of(HELLO, ADMIN, (packet(4, META, 4), 0)),
}
O_UP = ((packet(1, text("0.1.0")), 0),
        (packet(2, text("demo") + text("api.example.com") + struct.pack("<HB", 443, 1)), 1),
        (packet(3), 1))
O_RESULT = packet(5,
                  struct.pack("<BHBQI", 0, 200, 1, 77,
                              0) + text("api") + text("192.0.2.7") + text("answered"), 9)
O_NEED = packet(9, b"\0" + struct.pack("<I", 1) + bytes(32), 1)
O_SOCKET = packet(8, b"\0" + text("192.0.2.7") + text("connected"), 1)
origin_chan = {
    "exchange": run_of(*O_UP, (packet(4, b"", 9), 1), (packet(7, b"", 1), 0), (O_SOCKET, 1),
                       (O_NEED, 0),
                       (packet(10, b"\1" + struct.pack("<I", 60) + text(""), 1), 1), (O_RESULT, 0),
                       (packet(6, struct.pack("<QQ", 400, 900), 9), 0)),
    "refused": run_of(*O_UP, (packet(7, b"", 1), 0),
                      (packet(8, b"\6" + text("") + text("refused"), 1), 0)),
    "no_value": run_of(*O_UP, (O_NEED, 0),
                       (packet(10, b"\0" + struct.pack("<I", 0) + text("removed"), 1), 0)),
    "tokens": run_of(*O_UP, (packet(11, b"\1" + struct.pack("<I", 3600)), 1),
                     (packet(11, b"\2" + struct.pack("<I", 0)), 1)),
    "need_too_early": run_of(*O_UP[:2], (O_NEED, 0)),
    "two_configs": run_of(*O_UP[:2], O_UP[1]),
    "no_fd": run_of(*O_UP, (packet(4, b"", 9), 0)),
    "used_nowhere": run_of(*O_UP,
                           (packet(5, struct.pack("<BHBQI", 0, 200, 1, 77, 0) + text("") * 3, 9),
                            0)),
    "unknown": run_of(*O_UP, (packet(13), 0)),
    "trailing": run_of(*O_UP, (packet(7, b"x"), 0)),
}


def run(kind, timeout_ms, serial=0, ident=1):
    return packet(1, struct.pack("<BIQ", kind, timeout_ms, serial), ident)


# the first byte: whether a descriptor is attached; kinds as in enum run_kind
run_chan = {
    "keyring": b"\1" + run(0, 15000),
    "decrypt": b"\1" + run(2, 15000),
    "ref": b"\1" + run(3, 30000, 7),
    "ref_without_serial": b"\1" + run(3, 30000),
    "no_fd": b"\0" + run(3, 30000, 7, 3),
    "ended": b"\0" + packet(2, struct.pack("<i", -110), 3),
}
ENTRY = META + NO_REF + struct.pack("<QQQ", 1, 5, 6) + struct.pack("<I", 5) + b"value"
book = {
    "empty": struct.pack("<QI", 0, 0),
    "one": struct.pack("<QI", 4, 1) + ENTRY,
    "reference": struct.pack("<QI", 4, 1) + META + REF + struct.pack("<QQQI", 2, 5, 6, 0),
    "twice": struct.pack("<QI", 4, 2) + ENTRY + ENTRY,
    "serial_ahead": struct.pack("<QI", 0, 1) + ENTRY,
    "many": struct.pack("<QI", 4, 100000),
}
SEAL = b"SBXVAULT" + struct.pack("<HBBQ", 1, 1, 1, 3) + bytes(16) + bytes(16) + bytes(12)
seal = {
    "other_key": SEAL + struct.pack("<I", 5) + bytes(21),
    "cut": SEAL + struct.pack("<I", 50) + bytes(21),
    "version": SEAL.replace(b"\1\0\1\1", b"\2\0\1\1") + struct.pack("<I", 5) + bytes(21),
    "huge": SEAL + struct.pack("<I", 0xffffffff) + bytes(21),
    "short": b"SBXVAULT",
}
extract = {
    "docker": b'\0{"ServerURL":"https://r.example.com","Username":"me",'
              b'"Secret":"s3cr\\u00e9\\ud83d\\ude00t\\n"}\n',
    "token": b'\0 {"Username":"<token>" , "Secret" : "x"} ',
    "not_json": b"\0credentials not found in native keychain\n",
    "cut": b'\0{"Secret":"abc\\u00',
    "line": b"\1first\r\nsecond\n",
    "whole": b"\2first\nsecond\n",
}
for name, seeds in (("origin_chan", origin_chan), ("vault_chan", vault_chan),
                    ("run_chan", run_chan), ("book", book), ("seal", seal),
                    ("extract", extract)):
    folder = corpus / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed, data in seeds.items():
        (folder / seed).write_bytes(data)
