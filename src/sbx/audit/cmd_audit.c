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
	{'f', "follow", NULL, "keep writing new records, or pass them to COMMAND"},
	{0, "position", "FILE", "with --follow: continue after the records of the last start"},
	{0, "heads", NULL, "with --follow: only signed heads"},
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
	{0, "dry-run", NULL, "list the records that would be removed, and remove nothing"},
	{'y', "yes", NULL, "do not prompt for confirmation"},
	{0},
};

static const struct verb subs[] = {
	{
		.name = "show",
		.args = "[SANDBOX]",
		.summary = "print the records, one per line",
		.about =
			"Prints the records of one sandbox, or of all sandboxes, in order of time. SANDBOX is a\n"
			"name or an id; the log of a removed sandbox is kept.",
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
		.about =
			"Verifies the hash chain, the signatures and the stored heads of one log, or of all logs,\n"
			"and prints the first bad record. A log that is being written can be verified; its last\n"
			"second is not signed yet. The exit status is 1 if a log fails verification.",
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
		.rest = true,
		.summary = "write the logs and the public key",
		.about =
			"Writes a line with the public key, then the records exactly as they are in the logs.\n"
			"sbx audit verify --file verifies the file.\n"
			"With --follow and a COMMAND, each batch of new records is the stdin of one execution\n"
			"of COMMAND, without a shell. Exit status 0 accepts the batch. Otherwise it is passed\n"
			"again after 1, 2, 4 ... 60 seconds; the records stay in the logs until then.",
		.examples =
			"  sbx audit export demo --json -o demo.jsonl\n"
			"  sbx audit export --follow --position ~/audit.position -- ssh logs 'cat >>sbx.jsonl'\n",
		.opts = export_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = audit_cmd_export,
	},
	{
		.name = "home",
		.args = "SANDBOX",
		.summary = "list changed start-up and key files of your home",
		.about =
			"When a sandbox is created, sbx records keyed hashes of the files in your home directory\n"
			"that are executed automatically or hold keys: shell, SSH, git, cloud keys, autostart.\n"
			"This command lists the files that have changed since. It cannot tell who changed them.\n"
			"The exit status is 1 if a file has changed, 125 without a record.",
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
		.about =
			"Removes the oldest segments (16 MiB each) of the log of SANDBOX, or of all logs. A signed\n"
			"cut keeps the chain: sbx audit verify reports how many records were pruned, and when. The\n"
			"log of sbxd records it first. A log that fails verification is not pruned. The newest\n"
			"segment of a running sandbox is kept. Use --yes if stdin is not a terminal.",
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
		"Each decision on a request of a sandbox, each policy change and each start and stop is one\n"
		"record in the audit log of that sandbox, chained with SHA-256 and signed every second.\n"
		"Logs are kept when their sandbox is removed. sbx policy log is a summary of them.",
	.examples = "  sbx audit show demo\n  sbx audit verify\n  sbx audit export demo --json -o "
		    "demo.jsonl\n",
	.subs = subs,
};
