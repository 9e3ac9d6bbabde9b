# SPDX-License-Identifier: Apache-2.0
"""Holes for the probes of data/probes/host: modes, planted files and processes, and programs that
let others in."""
import os
import pathlib
import signal
import subprocess
import sys

import holes
from mutation import Hole, Mutation


def mode(path, bits, red):
    """path(ctx) has another mode for a while."""
    def make(ctx):
        at = path(ctx)
        ctx.keep[str(at)] = at.stat().st_mode & 0o7777
        at.chmod(bits)

    def undo(ctx):
        at = path(ctx)
        at.chmod(ctx.keep.pop(str(at)))
    return Mutation(red=red, host=make, undo_host=undo)


def file(path, red, text="planted\n"):
    """A new file at path(ctx)."""
    def make(ctx):
        at = path(ctx)
        assert not os.path.lexists(at), f"{at} already exists"
        made = []
        for folder in reversed(at.parents):
            if not folder.exists():
                folder.mkdir(mode=0o700)
                made.append(folder)
        ctx.keep[str(at)] = made
        at.write_text(text)
        at.chmod(0o600)

    def undo(ctx):
        at = path(ctx)
        at.unlink()
        for folder in reversed(ctx.keep.pop(str(at))):
            folder.rmdir()
    return Mutation(red=red, host=make, undo_host=undo)


def process(key, argv, red, before=None, after=None):
    """A process that runs until the hole is closed."""
    def make(ctx):
        if before:
            before(ctx)
        ctx.keep[key] = subprocess.Popen([str(a) for a in argv(ctx)], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, start_new_session=True)
        ctx.keep[key].stdout.readline()
        if after:
            after(ctx)

    def undo(ctx):
        one = ctx.keep.pop(key)
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()
        one.stdout.close()
    return Mutation(red=red, host=make, undo_host=undo)


def state(name):
    return lambda ctx: ctx.env.state / name


def home(name):
    return lambda ctx: pathlib.Path(ctx.env.env["HOME"]) / name


def program(name):
    return lambda ctx: (pathlib.Path(ctx.env.env["SBX_LIBEXEC"]) / name).resolve()


def give_away(path):
    """A file of one of this user's subordinate ids."""
    subprocess.run(["unshare", "--user", "--map-root-user", "--map-auto", "sh", "-c",
                    'umask 077; : >"$1"; chown 1 "$1"', "sh", str(path)], check=True, timeout=30)


# one byte of the audit log

def log(ctx):
    return sorted((ctx.env.state / "audit" / ctx.box.info()["id"]).glob("*.jsonl"))[0]


def flip(ctx, was, becomes):
    with open(log(ctx), "r+b") as f:
        at = f.read().index(was)
        f.seek(at)
        f.write(becomes)


# a process of a removed sandbox

GONE = "0123456789ab"


def make_gone(ctx):
    folder = ctx.env.state / "sandboxes" / GONE
    folder.mkdir(mode=0o700)
    (folder / "lock").touch(mode=0o600)


def remove_gone(ctx):
    folder = ctx.env.state / "sandboxes" / GONE
    (folder / "lock").unlink()
    folder.rmdir()


HOLD = "import sys, time; f = open(sys.argv[1]); print(1, flush=True); time.sleep(1800)"
MUTATIONS = [
    mode(state("audit/heads"), 0o711, ("host/folder-modes",)),
    mode(state("policy"), 0o644, ("host/file-modes",)),
    mode(lambda ctx: ctx.env.socket, 0o666, ("host/socket-modes",)),
    mode(state("vault/lock"), 0o640, ("host/vault-file", "host/file-modes")),
    mode(state("audit/key"), 0o640, ("host/audit-key", "host/file-modes")),
    mode(lambda ctx: ctx.box.state / "docker.qcow2", 0o604, ("host/disks", "host/file-modes")),
    mode(program("sbx-graft"), 0o4755, ("host/no-setuid",)),
    mode(program("sbx-sudo"), 0o757, ("host/programs",)),
    Mutation(red=("host/owners",), host=lambda ctx: give_away(ctx.env.state / "planted"),
             undo_host=lambda ctx: (ctx.env.state / "planted").unlink()),
    file(state("core.4711"), ("host/core-files",)),
    file(home(".zlogin"), ("host/home-shell",), "evil &\n"),
    file(home(".ssh/authorized_keys2"), ("host/home-ssh",), "ssh-ed25519 AAAA planted\n"),
    file(home(".config/git/attributes"), ("host/home-git",), "* filter=evil\n"),
    file(home(".pypirc"), ("host/home-keys",), "[pypi]\nrepository = elsewhere\n"),
    file(home(".config/autostart/planted.desktop"), ("host/home-start",), "Exec=evil\n"),
    Mutation(red=("host/leftover-runtime",),
             host=lambda ctx: (ctx.env.runtime / "s" / GONE).mkdir(mode=0o700),
             undo_host=lambda ctx: (ctx.env.runtime / "s" / GONE).rmdir()),
    process("gone",
            lambda ctx: [sys.executable, "-c", HOLD, ctx.env.state / "sandboxes" / GONE / "lock"],
            ("host/leftover-processes",), make_gone, remove_gone),
    process("stranger",
            lambda ctx: ["unshare", "--user", "--map-root-user", "--map-auto", "--setuid", "1",
                         "sh", "-c", "echo; sleep 1800; :", f"--id {ctx.box.info()['id']}"],
            ("host/own-user",)),
    Mutation(red=("host/audit-chain",), host=lambda ctx: flip(ctx, b'"proved"', b'"provez"'),
             undo_host=lambda ctx: flip(ctx, b'"provez"', b'"proved"')),
    Mutation(red=("host/clock",), guest="date -s @$(($(date +%s) - 300))",
             undo_guest="date -s @$(($(date +%s) + 300))"),
]


def hole(name, source, old, new, red, **kwargs):
    holes.HOLES.append(Hole(f"host-{name}", source, old, new))
    return Mutation(red=red, hole=f"host-{name}", **kwargs)


LINK = "src/keeper/link/sbxd_link.c"
# 127.0.0.1, any port
LISTEN = """	{
		struct sockaddr in = {.sa_family = AF_INET, .sa_data = {0, 0, 127, 0, 0, 1}};
		struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "\\0sbx-planted"};
		int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		int abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		(void)!bind(tcp, &in, sizeof(in));
		(void)!listen(tcp, 1);
		(void)!bind(udp, &in, sizeof(in));
		(void)snprintf(un.sun_path + 1, 32, "sbx-planted-%d", getpid());
		(void)!bind(abstract, (struct sockaddr *)&un,
			    sizeof(sa_family_t) + 1 + strlen(un.sun_path + 1));
		(void)!listen(abstract, 1);
	}
"""

MUTATIONS += [
    hole("probe-shell", "src/prove/prove_script.c",
         'access("/bin/dash", X_OK) == 0 ? "/bin/dash" : "/bin/sh"', '"/bin/bash"',
         ("host/probe-shell",)),
    hole("vault-releases", "lib/os/ipc/vault_chan.c",
         '{"RELEASE", VAULT_FROM_PEER, IN(SANDBOX), 0,',
         '{"RELEASE", VAULT_FROM_PEER, IN(SANDBOX) | IN(ADMIN), 0,',
         ("host/vault-own-user",)),
    hole("own-folders", "lib/vm/share/place.c", "\t\tif (place_is_in(real, own.dirs[i]))\n",
         "\t\tif (!real[0] && place_is_in(real, own.dirs[i]))\n",
         ("host/own-folders-refused",)),
    hole("waits-for-pipe", "lib/base/fs/file.c", "O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY",
         "O_RDONLY | O_CLOEXEC", ("host/pipe-for-file",)),
    hole("completion", "src/sbx/completion.c", 'COMPREPLY+=(\\"$(printf %q \\"$name\\")\\")',
         'COMPREPLY+=(\\"$name\\")', ("host/completion",)),
    hole("template-name", "src/sbx/template/cmd_template_save.c",
         "\tif (!is_taken(name, old) || strcmp(was, id) == 0)\n",
         "\tif (!is_taken(name, old) || strcmp(was, id) == 0 || name[0])\n",
         ("host/template-name",)),
    # S10 of docs/review.md
    hole("template-text", "lib/vm/template/template_import.c", "\tif (!is_plain_fact(m, 0))\n",
         "\tif (!m && !is_plain_fact(m, 0))\n", ("host/template-manifest",)),
    hole("template-size", "lib/vm/template/template_import.c", "\tif (is_too_large(files))\n",
         "\tif (!files && is_too_large(files))\n", ("host/template-manifest",)),
    hole("import-hides", "src/sbx/policy/cmd_policy_whole.c",
         "\tfor (size_t i = 0; i < d.n_wide; i++)\n",
         "\tfor (size_t i = 0; i < d.n_wide && !d.n_added; i++)\n", ("host/import-shows-wide",)),
    hole("command-anywhere", "src/sbxd/api/ref_check.c",
         "if (walk_is_in(l->seen.path[i], w->host))",
         "if (!w->host[0] && walk_is_in(l->seen.path[i], w->host))",
         ("host/command-in-workspace",)),
    hole("listens", LINK, "\tk->listen_fd = TAKE_FD(fd);\n",
         "\tk->listen_fd = TAKE_FD(fd);\n" + LISTEN,
         ("host/tcp-listeners", "host/udp-sockets", "host/abstract-sockets")),
    hole("api-anybody", "src/sbxd/http/conn.c", "!fd_is_same_user(fd)", "fd < 0",
         ("host/api-other-user",)),
    hole("vault-anybody", "src/vault/main/peer.c", "if (fd_is_same_user(fd))", "if (fd >= 0)",
         ("host/vault-other-user",)),
    hole("keeper-anybody", "src/keeper/link/sbxd_link.c", " && fd_is_same_user(fd))", ")",
         ("host/keeper-other-user",)),
    hole("wire-name", "src/keeper/worker/hands.c",
         "\t(void)unlink(sa.sun_path);\n\tif (*ret_path < 0)", "\tif (*ret_path < 0)",
         ("host/wire-has-no-name",)),
    hole("environment", "lib/base/process/keepenv.c", "\tret[n] = NULL;\n",
         '\tret[n++] = (char *)"GITHUB_TOKEN=planted";\n\tret[n] = NULL;\n',
         ("host/environments",)),
    hole("arguments", "src/sbxd/hands/hands_serve.c", "argv[4] = (char *)(uintptr_t)ways[way];",
         'argv[4] = way == HANDS_WARM ? (char *)"--token=planted" : (char *)(uintptr_t)ways[way];',
         ("host/command-lines",)),
]
MUTATIONS += [hole("unrecorded", "lib/rules/gate/gate.c",
                   "\tr = record_gate(g, ask, path, &j, &err);\n",
                   '\tr = str_starts(ask->host, "record-") ? 0 : record_gate(g, ask, path, '
                   '&j, &err);\n', ("host/audit-records",))]
