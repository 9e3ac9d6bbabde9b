# SPDX-License-Identifier: Apache-2.0
"""A name with a credential that resolves to a private address: the resolver is the attacker's. Runs
in separate namespaces, where every address is local.

usage:  tests/proxy/cred_rebinding.py      one JSON line

For each address the name has (inside ones, and an inside one among public ones) a request is sent.
Not one connection may be made, and no credential released; the public address alone is connected
to, so that the test could fail.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "rigs"), str(HERE.parent / "rigs/lab")]
import credlab  # noqa: E402
import rig as rigs  # noqa: E402

HOST = "api.openai.com"
PUBLIC = "93.184.216.34"
INSIDE = ("127.0.0.1", "10.1.2.3", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1",
          "0.0.0.0", "::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1",
          "64:ff9b::7f00:1")
OWN = "93.184.217.77"


def ask(rig):
    done = subprocess.run(["curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}",
                           "--proxy", f"http://127.0.0.1:{rig.bridge()}", "--cacert", rig.ca(),
                           f"https://{HOST}/rebound"], capture_output=True, text=True, timeout=20,
                          check=False)
    return done.stdout


def run(folder):
    resolver = rigs.Resolver({HOST: [PUBLIC]})
    server = rigs.Listener(443)
    bad = []
    with credlab.Lab(folder) as lab, rigs.CredRig([f"allow network {HOST}:443"], None,
                                                  lab.ca.pem) as rig:
        rig.set_secret("openai", "sk-proj-rebinding0123456789")
        # An address that the host gets while the test runs is a host address a second later.
        subprocess.run(["ip", "addr", "add", f"{OWN}/32", "dev", "lo"], check=True)
        time.sleep(1.1)
        for addresses in [[a] for a in (*INSIDE, OWN)] + [[PUBLIC, "127.0.0.1"]]:
            resolver.answers[HOST] = addresses
            before = server.count
            status = ask(rig)
            if server.count != before or status not in ("403", "502"):
                bad.append([addresses, status, server.count - before])
        inside = server.count
        resolver.answers[HOST] = [PUBLIC]
        ask(rig)
        time.sleep(0.2)
        records = [r for r in rig.records() if r["kind"] == "credential-use"]
        said = sum("address" in r["reason"] or "inside" in r["reason"] for r in records)
    ok = not bad and inside == 0 and server.count >= 1 and not any(r["action"] == "release"
                                                                   for r in records) and said > len(
        INSIDE)
    print(json.dumps({"id": "credential-rebinding", "addresses": len(INSIDE) + 2,
                      "connections_inside": inside, "connections_public": server.count, "bad": bad,
                      "records_that_say_why": said, "ok": ok}))
    if not ok:
        print(json.dumps(records[-3:]), file=sys.stderr)
    return 0 if ok else 1


def main():
    if os.environ.get("SBX_RIG_NAMESPACE") != "yes":
        os.environ["SBX_RIG_NAMESPACE"] = "yes"
        os.execvp("unshare", ["unshare", "-rnm", sys.executable, "-B"] + sys.argv)
    with tempfile.TemporaryDirectory(prefix="sbx-rig.") as folder:
        conf = pathlib.Path(folder) / "resolv.conf"
        conf.write_text("nameserver 127.0.0.1\n", encoding="ascii")
        subprocess.run(["mount", "--bind", conf, "/etc/resolv.conf"], check=True)
        rigs.namespace()
        return run(folder)


if __name__ == "__main__":
    sys.exit(main())
