/* SPDX-License-Identifier: Apache-2.0 */
#include "audit_cmd.h"
#include "audit.h"

static const struct opt_def show_opts[] = {
	{'n', "limit", "N",
		"print the newest N records; 0 prints all (default: 100; 0 with --since)"},
	{0, "since", "TIME", "print only records since TIME: 10m, 24h, 2026-01-31T12:00:00Z"},
	{'f', "follow", NULL, "keep printing new records until Ctrl-C"},
	{'a', "all", NULL, "also print signed heads and beginnings of segments"},
	{0, "json", NULL, "print the records as they are in the log"},
	{0},
};

static const struct opt_def verify_opts[] = {
	{0, "file", "FILE", "verify an export instead of this installation's logs"},
	{0, "key", "HEX", "public key that must have signed the export"},
	{0, "json", NULL, "print JSON"},
	{0},
};

static const struct opt_def export_opts[] = {
	{0, "json", NULL, "write lines of JSON (the only format)"},
	{'o', "output", "FILE", "write to FILE (default: stdout)"},
	{0},
};

static const struct opt_def home_opts[] = {
	{0, "group", "GROUP", "check only shell, ssh, git, keys or start"},
	{0, "accept", NULL, "record the current state as the new baseline"},
	{0},
};

static const struct opt_def prune_opts[] = {
	{'a', "all", NULL, "prune the logs of all sandboxes, also removed ones, and of sbxd"},
	{0, "older-than", "TIME", "remove records older than TIME: 30d, 12h, 2026-01-31T12:00:00Z"},
	{0, "keep-size", "SIZE", "remove the oldest records until a log has at most SIZE"},
	{0, "dry-run", NULL, "list what would be removed, and remove nothing"},
	{'y', "yes", NULL, "do not prompt for confirmation"},
	{0},
};

static const struct verb subs[] = {
	{
		.name = "show",
		.args = "[SANDBOX]",
		.summary = "print the records, one per line",
		.about = "Prints the records of one sandbox, or of all, by time. SANDBOX is a name "
			 "or an id,\nalso of a sandbox that was removed: its log stays.",
		.examples = "  sbx audit show demo --since 1h\n  sbx audit show -f\n"
			    "  sbx audit show demo --json --limit 0 | jq "
			    "'select(.decision==\"deny\")'\n",
		.opts = show_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = audit_cmd_show,
	},
	{
		.name = "verify",
		.args = "[SANDBOX]",
		.summary = "verify that the logs are intact",
		.about = "Checks hash chain, signatures and kept heads of one log, or of all, and "
			 "names the\nfirst bad record. A log that is being written can be checked "
			 "too: its last second\nis not signed yet. Exit status 1 when something is "
			 "wrong.",
		.examples = "  sbx audit verify\n"
			    "  sbx audit verify --file demo.jsonl --key $(cat key.pub)\n",
		.opts = verify_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = audit_cmd_verify,
	},
	{
		.name = "export",
		.args = "[SANDBOX]",
		.summary = "write the logs and the public key",
		.about =
			"Writes a line with the public key, then the records exactly as they stand "
			"in the logs.\nWhoever gets the file can check it with sbx audit verify "
			"--file.",
		.examples = "  sbx audit export demo --json -o demo.jsonl\n",
		.opts = export_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = audit_cmd_export,
	},
	{
		.name = "home",
		.args = "SANDBOX",
		.summary = "list changed start-up and key files of your home",
		.about = "When a sandbox is made, the files of your home folder that run by "
			 "themselves or hold\nkeys are recorded as keyed hashes: shell, SSH, git, "
			 "cloud keys, autostart. This names\nthose that are different now. Who "
			 "changed them is not known: it may have been you.\nExit status 1 when "
			 "there are any, 125 without a record.",
		.examples = "  sbx audit home demo\n  sbx audit home --accept demo\n",
		.opts = home_opts,
		.min = 1,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = audit_cmd_home,
	},
	{
		.name = "prune",
		.args = "[SANDBOX]",
		.summary = "remove old records; the rest still verifies",
		.about = "Removes the oldest segments (16 MiB each) of the log of SANDBOX, or of "
			 "all logs.\nA signed cut keeps the chain: sbx audit verify reports how "
			 "many "
			 "records were pruned,\nand when. The log of sbxd records it first. A log "
			 "that "
			 "does not verify is not pruned.\nThe newest segment of a running sandbox "
			 "stays. Without a terminal --yes is required.",
		.examples = "  sbx audit prune --all --older-than 30d\n"
			    "  sbx audit prune demo --keep-size 100m --yes\n",
		.opts = prune_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = audit_cmd_prune,
	},
	{0},
};

const struct verb verb_audit = {
	.name = "audit",
	.group = "management",
	.args = "COMMAND",
	.summary = "show and verify the audit log",
	.about =
		"Each decision on a request of a sandbox, each change of the policy and each start "
		"and stop is\none record in the audit log of that sandbox, chained with SHA-256 "
		"and signed every second.\nLogs stay when their sandbox is removed. sbx policy log "
		"is a summary of them.",
	.examples = "  sbx audit show demo\n  sbx audit verify\n  sbx audit export demo --json -o "
		    "demo.jsonl\n",
	.subs = subs,
};
