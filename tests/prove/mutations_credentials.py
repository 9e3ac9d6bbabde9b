# SPDX-License-Identifier: Apache-2.0
"""Holes for the group credentials. They put the value of a credential where it must not be; the
probes do not have the value, the vault does.

Every mutation that plants a value first sets the service to a value that it knows: the world's own
may be random.
"""
import os
import pathlib
import secrets
import signal
import subprocess
import time

from holes import HOLES
from mutation import Hole, Mutation

SERVICE = "anthropic"
# A sentence of a file in the template that no program reads: as a value it occurs there only.
IN_TEMPLATE = "Everyone is permitted to copy and distribute verbatim copies"


def know(ctx):
    """Sets the value of the service."""
    if not ctx.keep.get("value"):
        ctx.keep["value"] = "sk-ant-api03-" + secrets.token_hex(24)
        ctx.env.sbx("secret", "set", "-f", SERVICE, input=ctx.keep["value"])
    return ctx.keep["value"]


def forget(ctx):
    """Sets another value: freed memory and blocks of removed files still have the old one, which is
    no longer valid."""
    if ctx.keep.pop("value", None):
        ctx.env.sbx("secret", "set", "-f", SERVICE, input="sk-ant-api03-" + secrets.token_hex(24))


def planted(script, undo, red):
    """Runs the script in the guest with the value on its stdin: the value is in no argument and no
    file except those of the script."""
    def plant(ctx):
        ctx.box.exec("sh", "-c", script, user="root", input=know(ctx), timeout=120)

    def remove(ctx):
        ctx.box.exec("sh", "-c", undo, user="root", timeout=120)
        forget(ctx)
    return Mutation(red=red, host=plant, undo_host=remove)


# files of the host

def write(path_of):
    def make(ctx):
        path = path_of(ctx)
        ctx.keep[("was", path)] = path.read_bytes() if path.exists() else None
        with open(path, "a", encoding="utf-8") as f:
            f.write(f"\n{know(ctx)}\n")

    def undo(ctx):
        path = path_of(ctx)
        was = ctx.keep.pop(("was", path), None)
        if was is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(was)
        forget(ctx)
    return {"host": make, "undo_host": undo}


def state(ctx):
    return ctx.env.folder / "state" / "sbx"


def home(ctx):
    return pathlib.Path(os.environ.get("HOME", "/"))


# processes of the host

def start_with_argument(ctx):
    ctx.keep["argument"] = subprocess.Popen(["sh", "-c", "sleep 600; :", know(ctx)],
                                            stdin=subprocess.DEVNULL)


def end_with_argument(ctx):
    if "argument" in ctx.keep:
        ctx.keep["argument"].kill()
        ctx.keep.pop("argument").wait()
    forget(ctx)


def restart_daemon(ctx, **variables):
    """Restarts sbxd with more in its environment; sandboxes and the vault keep running."""
    ctx.env.sbx("daemon", "stop", check=False)
    ctx.env.sbx("daemon", "start", env={**ctx.env.env, **variables})


def say_value_in_environment(ctx):
    restart_daemon(ctx, XDG_LEAK=know(ctx))  # one of the few variables that are passed on


def say_nothing_in_environment(ctx):
    restart_daemon(ctx)
    forget(ctx)


def chmod(path_of, mode, back):
    return {"host": lambda ctx: path_of(ctx).chmod(mode),
            "undo_host": lambda ctx: path_of(ctx).chmod(back)}


def trust_the_guest(ctx):
    """Adds the sandbox CA to the list that sbx itself trusts."""
    extra = ctx.env.sbx("settings", "get", "network.extra-ca").stdout.strip()
    ctx.keep["extra"] = extra
    path = ctx.folder / "with-guest.pem"
    path.write_text(pathlib.Path(extra).read_text() + ctx.box.guest("cat /run/sbx/ca.pem") + "\n")
    ctx.env.sbx("settings", "set", "network.extra-ca", path)


def trust_it_no_more(ctx):
    ctx.env.sbx("settings", "set", "network.extra-ca", ctx.keep.pop("extra"))


def comment_with_value(ctx):
    ctx.env.sbx("policy", "allow", "network", "comment.test", "--comment", know(ctx))


def no_comment(ctx):
    ctx.env.sbx("policy", "rm", "network", "--resource", "comment.test")
    forget(ctx)


def value_of_template(ctx):
    ctx.keep["value"] = IN_TEMPLATE
    ctx.env.sbx("secret", "set", "-f", SERVICE, input=IN_TEMPLATE)


def give_scope(ctx):
    """Sets a credential of the sandbox only, and then also of the twin."""
    for box in (ctx.box, ctx.twin):
        ctx.env.sbx("secret", "set-custom", "-f", "--sandbox", box.name, "--host", "scoped.test",
                    "--env", "SCOPED_KEY", "scoped", input="scoped-" + secrets.token_hex(20))


def take_scope(ctx):
    for box in (ctx.box, ctx.twin):
        ctx.env.sbx("secret", "rm", "-f", "--sandbox", box.name, "scoped")


def small_memlock(ctx):
    """A vault that cannot lock memory."""
    know(ctx)
    ctx.env.sbx("daemon", "stop", check=False)
    end_vaults(ctx)
    subprocess.run(["sh", "-c", 'ulimit -l 0; exec "$0" daemon start',
                    ctx.env.folder / "bin" / "sbx"], env=ctx.env.env, check=True, timeout=60,
                   stdin=subprocess.DEVNULL)
    ctx.env.sbx("secret", "status")


def usual_memlock(ctx):
    ctx.env.sbx("daemon", "stop", check=False)
    end_vaults(ctx)
    ctx.env.sbx("secret", "status")


def end_vaults(ctx):
    import host
    for pid, name in host.processes(ctx.env.folder).items():
        if name in ("sbx-vault", "sbx-vault-run"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    time.sleep(0.3)


G = "credentials/"


def names(*ids):
    return tuple(G + i for i in ids)


HOLES += [
    Hole("exec-takes-environment", "src/sbx/session/env.c",
         "\t\tr = env_add(e, words->v[i], &p->err);\n\treturn r;\n",
         "\t\tr = env_add(e, words->v[i], &p->err);\n\tif (r == 0 && getenv(\"PROBE_SECRET\"))\n\t\tr = env_add(e, \"PROBE_SECRET\", &p->err);\n\treturn r;\n"),
    Hole("vault-dumpable", "lib/os/jail/seal.c", "prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0",
         "prctl(PR_SET_DUMPABLE, profile == JAIL_VAULT || profile == JAIL_ORIGIN, 0, 0, 0) < 0"),
    Hole("vault-core", "lib/os/jail/profiles.c", ".limit = {.core = 0,\n\t\t\t.fsize = 8192 * KIB,",
         ".limit = {.core = 4096,\n\t\t\t.fsize = 8192 * KIB,"),
    Hole("foreign-key-replaced", "src/origin/value/slot.c",
         "\t\tif (refuses_slot(sf, verdict, \"header\", h->name))\n\t\t\treturn false;\n",
         "\t\tif (refuses_slot(sf, verdict, \"header\", h->name))\n\t\t\tcontinue;\n"),
    Hole("model-api-is-a-tunnel", "src/keeper/credential/creds.c",
         "service_has_login(s)) || c->all || service_has_always(s);",
         "service_has_login(s)) || c->all;"),
    Hole("plain-to-bound-host", "lib/rules/gate/gate.c",
         "\tif (is_plain(ask) && (is_bound || (b && b->has_host))) {",
         "\tif (is_plain(ask) && is_bound && ask->port == 1) {"),
    Hole("trace-with-credential", "lib/rules/gate/gate.c",
         "ask->kind == EDGE_ASK_HTTP && !may_carry(ask)) {",
         "ask->kind == EDGE_ASK_HTTP && !may_carry(ask) && ask->port == 1) {"),
    Hole("authority-not-compared", "lib/wire/http/canon/canon_name.c",
         "if (names->authority.given && !is_same(&names->authority, target, port))",
         "if (names->authority.given && !names->sni.given && !is_same(&names->authority, target, port))"),
    # F2, H2, F9, H4, F1 of docs/review.md
    Hole("new-keys-handed-out", "src/origin/value/slot.c", "if (refuse_judge(o, x, ret_where) < 0)",
         "if (refuse_judge(o, x, ret_where) < 0 && !x)"),
    Hole("foreign-fields-pass", "lib/secret/service/service.c",
         "\tif (is_known(s, where, name))\n\t\treturn judge_known(s, where, name, value);\n",
         "\tif (where != SERVICE_IN_HEADER || !service_is_word(name, \"authorization\"))\n\t\treturn SERVICE_PLAIN;\n"
         "\tif (is_known(s, where, name))\n\t\treturn judge_known(s, where, name, value);\n"),
    Hole("masked-frames-pass", "lib/wire/http/ws.c",
         "if ((w->n_head == 1 && c & RSV) || (w->n_head == 2 && c & MASK))", "if (false)"),
    Hole("searched-for-what-is-here", "src/origin/answer/sweep.c",
         "\tif (!now || (x->result.used && !x->pinned))\n\t\treturn NULL;\n",
         "\tstruct values v = {0};\n\n\tif (!now || (x->result.used && !x->pinned))\n\t\treturn NULL;\n"
         "\tfor (size_t i = 0; i < ORIGIN_N_WHICH; i++)\n\t\tif (o->value[i].state == VALUE_HERE)\n\t\t\tadd_parts(&v, o->value[i].frame.value);\n"
         "\tif (v.n || x->pinned)\n\t\treturn make_sweep(&v, NULL);\n"),
    Hole("base32-not-found", "lib/secret/scrub/scrub_match.c",
         "\treturn c >= 'a' && c <= 'z' ? c - 'a' : -1;\n", "\treturn -1;\n"),
    Hole("answers-not-looked-through", "src/origin/answer/sweep.c",
         "return x->pinned ? join_sweep(x->pinned, now) : share_sweep(now);",
         "return make_sweep(&(struct values){0}, NULL);"),
]

# A curl that claims to have sent the request, for the one probe that uses it.
LIE = r"""cat >/usr/local/bin/curl <<'END'
#!/bin/sh
case $* in
*'-o /dev/null -w status %{http_code}'*https://*) echo status 200 ;;
*) exec /usr/bin/curl "$@" ;;
esac
END
chmod 755 /usr/local/bin/curl"""

MUTATIONS = [
    # in the guest
    planted(
    "v=$(cat); LEAK=$v setsid sleep 900 >/dev/null 2>&1 </dev/null & echo $! >/run/holder-1; sleep 0.3", "kill $(cat /run/holder-1); rm /run/holder-1",
            names("environment", "memory")),
    planted(
    "v=$(cat); setsid sh -c 'sleep 900; :' \"$v\" >/dev/null 2>&1 </dev/null & echo $! >/run/holder-2; sleep 0.3", "kill $(cat /run/holder-2); rm /run/holder-2",
            names("arguments", "memory")),
    planted(
    "v=$(cat); mkfifo /run/holder-pipe; setsid sh -c 'read -r v </run/holder-pipe; sleep 900; :' >/dev/null 2>&1 </dev/null & echo $! >/run/holder-3; "
            "printf '%s\\n' \"$v\" >/run/holder-pipe; sleep 0.3",
    "kill $(cat /run/holder-3); rm /run/holder-3 /run/holder-pipe", names("memory")),
    planted("cat >/usr/local/lib/left-over; sync", "rm -f /usr/local/lib/left-over",
            names("disk", "memory")),
    planted(
    "mkdir -p /run/vdb && mount /dev/vdb /run/vdb && cat >/run/vdb/left-over; umount /run/vdb; sync", "mount /dev/vdb /run/vdb; rm -f /run/vdb/left-over; umount /run/vdb; rmdir /run/vdb; sync", names("docker-disk", "memory")),
    planted("cat >/dev/shm/left-over", "rm -f /dev/shm/left-over", names("files", "memory")),
    planted(
    "f=$(mktemp -p /dev/shm); cat >$f; python3 -c 'import ctypes, sys; v = open(sys.argv[1]).read().encode(); l = ctypes.CDLL(None, use_errno=True); "
            "k = l.syscall(248, b\"user\", b\"left-over\", v, len(v), -4); assert k > 0' $f; rm -f $f",
            "python3 -c 'import ctypes; l = ctypes.CDLL(None); k = l.syscall(250, 10, -4, b\"user\", b\"left-over\", 0); l.syscall(250, 9, k, -4)'",
            names("keyrings", "memory")),
    Mutation(red=names("sentinels"),
             guest="echo 'export ANTHROPIC_API_KEY=sk-ant-of-somebody' >>/home/agent/.profile",
             undo_guest="sed -i '/sk-ant-of-somebody/d' /home/agent/.profile"),
    Mutation(red=names("docker-login"),
             guest="mkdir -p ~root/.docker; cp ~root/.docker/config.json /run/docker-config.was "
                   "2>/dev/null; "
             "echo '{\"auths\":{\"registry.test\":{\"auth\":\"dXNlcjpwYXNzd29yZA==\"}}}' >~root/.docker/config.json",
             undo_guest="if [ -f /run/docker-config.was ]; then mv /run/docker-config.was "
                        "~root/.docker/config.json; else rm -f ~root/.docker/config.json; fi"),
    Mutation(red=names("git-helpers"),
             guest="HOME=/root git config --global credential.helper store",
             undo_guest="HOME=/root git config --global --unset credential.helper"),
    Mutation(red=names("agent-configs"),
             guest="mkdir -p /home/agent/.codex; "
                   "echo '{\"OPENAI_API_KEY\":\"sk-proj-abcdefghijklmnopqrstuvwxyz0123\"}' "
                   ">/home/agent/.codex/left.json",
             undo_guest="rm -f /home/agent/.codex/left.json; "
                        "rmdir /home/agent/.codex 2>/dev/null; :"),
    Mutation(red=names("ca-key"),
             guest="printf -- '-----BEGIN PRIVATE KEY-----\\nMIGHAgEAMBMGByq\\n"
                   "-----END PRIVATE KEY-----\\n' >/run/sbx/ca.key",
             undo_guest="rm -f /run/sbx/ca.key"),
    Mutation(red=names("request-works"), guest=LIE, undo_guest="rm -f /usr/local/bin/curl"),
    # on the host
    Mutation(red=names("workspace", "memory"),
             **write(lambda ctx: ctx.box.workspace / ".env.left")),
    Mutation(red=names("logs"), **write(lambda ctx: ctx.box.state / "left.log")),
    Mutation(red=names("audit-log"), **write(lambda ctx: state(ctx) / "audit" / "left-over")),
    Mutation(red=names("state-files"), **write(lambda ctx: ctx.box.state / "left-over")),
    Mutation(red=names("vault-sealed"), **write(lambda ctx: state(ctx) / "vault" / "left-over")),
    Mutation(red=names("history"), **write(lambda ctx: home(ctx) / ".bash_history")),
    Mutation(red=names("vault-files"),
             **chmod(lambda ctx: state(ctx) / "vault" / "sealed", 0o640, 0o600)),
    Mutation(red=names("host-arguments"), host=start_with_argument, undo_host=end_with_argument),
    Mutation(red=names("host-environments"), host=say_value_in_environment,
             undo_host=say_nothing_in_environment),
    Mutation(red=names("command-output", "state-files", "audit-log", "memory-of-programs"),
             host=comment_with_value, undo_host=no_comment, alone=True),
    Mutation(red=names("own-ca"), host=trust_the_guest, undo_host=trust_it_no_more, alone=True),
    Mutation(red=names("other-scope"), host=give_scope, undo_host=take_scope, alone=True),
    Mutation(red=names("template"), host=value_of_template, undo_host=forget, alone=True),
    Mutation(red=names("vault-swap"), host=small_memlock, undo_host=usual_memlock, alone=True),
    # in a build
    Mutation(red=names("exec-environment"), hole="exec-takes-environment"),
    Mutation(red=names("vault-memory", "origin-memory"), hole="vault-dumpable"),
    Mutation(red=names("no-cores"), hole="vault-core"),
    Mutation(red=names("foreign-key", "foreign-fields", "model-key"), hole="foreign-key-replaced"),
    Mutation(red=names("foreign-fields"), hole="foreign-fields-pass"),
    Mutation(red=names("new-key"), hole="new-keys-handed-out"),
    Mutation(red=names("websocket-frames"), hole="masked-frames-pass"),
    Mutation(red=names("renewed-value"), hole="searched-for-what-is-here", alone=True),
    Mutation(red=names("reflected-rare"), hole="base32-not-found"),
    Mutation(red=names("model-key"), hole="model-api-is-a-tunnel"),
    Mutation(red=names("plain-http"), hole="plain-to-bound-host"),
    Mutation(red=names("trace"), hole="trace-with-credential"),
    Mutation(red=names("other-host-header"), hole="authority-not-compared"),
    # the unsearched response also passes edge and QEMU
    Mutation(red=names(*(f"reflected-{i}"
                         for i in ("body", "header", "gzip", "base64", "hex", "percent", "rare")),
                       "renewed-value", "websocket-frames", "memory-of-programs"),
             hole="answers-not-looked-through"),
]
