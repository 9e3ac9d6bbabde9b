# SPDX-License-Identifier: Apache-2.0
"""Holes that open when a process dies or is restarted.

A gate that was opened stays open until the policy is read again: at the next start of the sandbox,
at a change of the policy, and when a new sbxd finds the running sandbox. Probes run in the order of
their names, so a hole that opens at one event is also seen by the probes after it, until the policy
is read again. These probes are named too.
"""
from holes import HOLES
from mutation import Hole, Mutation

# After each of these the VM was restarted, and the policy read.
STARTS = ("recovery/guest-crash", "recovery/kill-hider", "recovery/kill-keeper",
          "recovery/kill-qemu", "recovery/kill-starting",
          "recovery/kill-virtiofsd", "recovery/stop-start", "recovery/suspend-restore")
LIVES = ("recovery/daemon-restart", "recovery/hang-egress", "recovery/kill-edge",
         "recovery/kill-egress", "recovery/kill-guest-net",
         "recovery/kill-sbxd", "recovery/kill-vault")
OPEN = ('(k->gate, ({ long rules[32] = {0}; (void)!rules_decode(slice_from_str("policy 1\\n\\n'
        'group hole\\nallow network **:1-65535\\n\\nend\\n"), "hole", (void *)rules, NULL); '
        'policy_new((void *)rules, "hole"); }));')
# These files do not include gate.h and policy.h.
DECLARED = ("\tint rules_decode(struct slice, const char *, void *, void *);\n"
            "\tstruct policy *policy_new(const void *, const char *);\n"
            "\tvoid gate_set_policy(struct gate *, struct policy *);\n\n")

HOLES += [
    # CVE-2026-12539: settings applied at creation are lost at the next start
    Hole("policy-first-start-only", "src/keeper/network/netpolicy.c",
         "\t\tuse_tables(k);\n\t\tnext->is_used = true;\n",
         "\t\tAUTO_FREE char *disk = xasprintf(\"%s/root.qcow2\", k->dir);\n\n\t\tuse_tables(k);\n"
         f"\t\tif (access(disk, F_OK) == 0)\n\t\t\tgate_set_policy{OPEN}\n"
         "\t\tnext->is_used = true;\n"),
    Hole("policy-lost-with-egress", "src/keeper/worker/egress_link.c",
         "\tworker_on_exit(k, &k->egress->worker);\n",
         f"\tworker_on_exit(k, &k->egress->worker);\n{DECLARED}\tgate_set_policy{OPEN}\n"),
    Hole("policy-lost-with-sbxd", "src/keeper/link/sbxd_link.c",
         "\tif (fd >= 0 && fd_is_same_user(fd))\n",
         f"{DECLARED}\tgate_set_policy{OPEN}\n\tif (fd >= 0 && fd_is_same_user(fd))\n",
         # A new sbxd makes the keeper read the policy again, which would close the gate.
         also=(("src/sbxd/keepers/reload.c",
                "\tk->reload.want = ++d->keepers->n_reloads;\n\treload_push(d, k);\n",
                "\tk->reload.want = k->reload.done;\n\treload_push(d, k);\n"),)),
    Hole("policy-not-read-again", "src/keeper/network/netpolicy.c",
         "\tif (!np->next.is_used)\n\t\tuse_tables(k);\n",
         ""),
    Hole("second-edge-jail", "lib/os/jail/spawn.c", "\tif (s->row->host_net)\n",
         "\tstatic int n_edges;\n\n"
         "\tif (s->row->host_net || (s->row == jail_row(JAIL_EDGE) && n_edges++))\n"),
    Hole("no-second-origin", "src/keeper/credential/origin_link.c",
         "\ttake_blamed(k, o)->n_crashes++;\n\tworker_on_exit(k, &o->worker);\n",
         "\ttake_blamed(k, o)->n_violations = KEEPER_ORIGIN_VIOLATIONS;\n"
         "\tworker_on_exit(k, &o->worker);\n"),
    Hole("socket-left", "src/keeper/worker/hands.c", "\t(void)unlink(sock);\n", "",
         # sbxd removes what a keeper left in its runtime directory.
         also=(("src/sbxd/keepers/keeper_end.c", "\twipe_runtime(id);\n", ""),)),
    # T1 of docs/review.md
    Hole("start-follows-links", "lib/vm/share/place.c",
         "RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS", "RESOLVE_NO_MAGICLINKS"),
    Hole("memory-left", "src/keeper/memory/suspend_file.c",
         "\tremove_folder(dir, SUSPEND_NEW);\n\tremove_folder(dir, SUSPEND_USED);\n",
         "\tremove_folder(dir, SUSPEND_NEW);\n"),
]

MUTATIONS = [
    Mutation(red=(*STARTS, *LIVES, "recovery/kill-origin", "recovery/policy-reload"),
             allow=("**.invalid:80",)),
    Mutation(red=("recovery/guest-crash", "recovery/hang-egress", "recovery/kill-edge",
                  "recovery/kill-egress", "recovery/kill-guest-net",
                  *(s for s in STARTS if "guest-crash" not in s), "recovery/kill-origin",
                  "recovery/kill-vault"),
             hole="policy-first-start-only"),
    Mutation(red=("recovery/kill-egress", "recovery/kill-guest-net"),
             hole="policy-lost-with-egress"),
    Mutation(red=("recovery/daemon-restart", "recovery/kill-sbxd"), hole="policy-lost-with-sbxd"),
    # alone: every other open gate would stay open when sbxd is restarted
    Mutation(red=("recovery/policy-reload",), hole="policy-not-read-again", alone=True),
    Mutation(red=("recovery/kill-edge",), hole="second-edge-jail"),
    Mutation(red=("recovery/kill-origin",), hole="no-second-origin"),
    Mutation(red=("recovery/stop-start",), hole="socket-left"),
    Mutation(red=("recovery/stop-start", "recovery/suspend-restore"), hole="start-follows-links"),
    Mutation(red=("recovery/suspend-restore",), hole="memory-left"),
]
