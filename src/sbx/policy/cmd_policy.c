/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_verbs.h"
#include "policy.h"

#define ABOUT_RESOURCES                                                                           \
	"RESOURCES is a comma-separated list of hosts: example.com, *.example.com (one label),\n" \
	"**.example.com (any number), crl*.example.com, 192.0.2.1, 10.0.0.0/8, [2001:db8::1],\n"  \
	"** (every host). A port (:443) or a range of ports (:8000-9000) can follow each host."

#define ABOUT_REQUESTS                                                                          \
	"Rules of the kinds http, git and api are about requests: http HOST[:PORT]/PATH, git\n" \
	"HOST[:PORT]/REPOSITORY, api SERVICE (sbx api ls). In a path, * is any text of one\n"   \
	"segment and ** any number of segments. The options below narrow the rule."

static const struct verb subs[] = {
	{
		.name = "set-default",
		.args = "PRESET",
		.summary = "set the preset: allow-all, balanced or deny-all",
		.about =
			"Sets the rules that apply to all sandboxes. The rules of the previous preset are\n"
			"replaced; your own rules are kept.\n\n"
			"allow-all   all public hosts on all ports; private addresses stay blocked\n"
			"balanced    hosts for software development: forges, packages, documentation\n"
			"deny-all    no hosts until you allow them; with --lock, allow rules have no effect",
		.examples = "  sbx policy set-default balanced\n"
			    "  sbx policy set-default deny-all && sbx policy allow network "
			    "example.com\n"
			    "  sbx policy set-default deny-all --lock\n",
		.opts = policy_default_opts,
		.min = 1,
		.max = 1,
		.first = VERB_PRESET,
		.run = policy_default_run,
	},
	{
		.name = "init",
		.args = "[PRESET]",
		.summary = "like set-default; prompts without a PRESET",
		.about = "The same as set-default. Without a PRESET, prompts for it on a terminal.",
		.examples = "  sbx policy init balanced\n",
		.opts = policy_default_opts,
		.max = 1,
		.first = VERB_PRESET,
		.run = policy_init_run,
	},
	{
		.name = "allow",
		.args = "KIND RESOURCES",
		.summary = "allow hosts or requests",
		.about =
			"Adds a rule that allows hosts (KIND network), for all sandboxes or for one. The rule\n"
			"applies to running sandboxes immediately. Without a port, it allows ports 80 and 443.\n"
			"Deny rules take precedence.\n\n" ABOUT_RESOURCES "\n\n" ABOUT_REQUESTS
			" An\n"
			"allow rule about requests governs its hosts: only requests that such rules permit pass.",
		.examples = "  sbx policy allow network example.com,*.example.com:443\n"
			    "  sbx policy allow network git.example.com:22 --sandbox demo --for "
			    "8h\n"
			    "  sbx policy allow http 'api.example.com/v1/**' --method GET\n"
			    "  sbx policy allow git github.com/acme/app --do fetch\n",
		.opts = policy_add_opts,
		.min = 1,
		.max = 257,
		.first = VERB_KIND,
		.run = policy_allow_run,
	},
	{
		.name = "deny",
		.args = "KIND RESOURCES",
		.summary = "deny hosts or requests",
		.about =
			"Adds a rule that denies hosts (KIND network), and lists the rules that it overrides.\n"
			"Without a port, it denies all ports.\n\n" ABOUT_RESOURCES
			"\n\n" ABOUT_REQUESTS,
		.examples = "  sbx policy deny network gist.github.com --comment 'no pastes'\n"
			    "  sbx policy deny api github --do repo.delete\n",
		.opts = policy_add_opts,
		.min = 1,
		.max = 257,
		.first = VERB_KIND,
		.run = policy_deny_run,
	},
	{
		.name = "ask",
		.args = "KIND RESOURCES",
		.summary = "ask a person about requests",
		.about =
			"Adds a rule that holds requests for a person. Deny rules take precedence. Other requests\n"
			"to the host stay as they are.\n\n" ABOUT_REQUESTS,
		.examples =
			"  sbx policy ask git github.com/acme/app --do push --ref refs/heads/main\n",
		.opts = policy_add_opts,
		.min = 1,
		.max = 257,
		.first = VERB_KIND,
		.run = policy_ask_run,
	},
	{
		.name = "read-only",
		.args = "SERVICE",
		.summary = "make a service read-only",
		.about =
			"Adds allow rules for the hosts of a service, so that only requests that read pass: by the\n"
			"API pack of the service (sbx api ls), else GET, HEAD and OPTIONS, and git fetches. All\n"
			"other requests to these hosts are refused, unless another rule permits them.",
		.examples = "  sbx policy read-only github --sandbox demo\n",
		.opts = policy_read_only_opts,
		.min = 1,
		.max = 1,
		.first = VERB_SERVICE,
		.run = policy_read_only_run,
	},
	{
		.name = "rm",
		.args = "KIND",
		.summary = "remove rules",
		.about =
			"Removes the rule with an id, or removes resources from all rules that contain them. If a\n"
			"rule or resource does not exist, the command fails and removes nothing.",
		.examples = "  sbx policy rm network --id 3f2a90c1b47d\n"
			    "  sbx policy rm network --resource example.com --sandbox demo\n",
		.opts = policy_rm_opts,
		.min = 1,
		.max = 1,
		.first = VERB_KIND,
		.run = policy_rm_run,
	},
	{
		.name = "ls",
		.args = "[SANDBOX]",
		.summary = "list the rules",
		.about =
			"Lists a summary of the policy. With --wide, or if stdout is not a terminal, lists every\n"
			"rule. With a sandbox, lists the rules that apply to it.",
		.examples =
			"  sbx policy ls\n  sbx policy ls demo --wide\n  sbx policy ls demo | grep github\n",
		.opts = policy_ls_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = policy_ls_run,
	},
	{
		.name = "inspect",
		.args = "ID",
		.summary = "show one rule",
		.about = "Shows one rule and its origin. A unique prefix of the id is sufficient.",
		.examples = "  sbx policy inspect 3f2a90c1b47d\n",
		.opts = policy_inspect_opts,
		.min = 1,
		.max = 1,
		.run = policy_inspect_run,
	},
	{
		.name = "check",
		.args = "KIND TARGET",
		.summary = "show whether a target is allowed",
		.about =
			"With KIND http, TARGET is a method and a URL: shows whether the request is allowed, by\n"
			"which rule, and whether its host is governed by rules about requests.\n"
			"With KIND network:\n"
			"Shows whether a host, host:port or URL is allowed, and by which rule. If it is denied,\n"
			"prints the command to allow it. The default port is 443, or that of the URL. The exit\n"
			"status is 1 if the target is denied. Nothing is resolved or connected; a name that\n"
			"resolves to a private address is still blocked when it is used.",
		.examples = "  sbx policy check network https://example.com/x --sandbox demo\n"
			    "  sbx policy check http 'DELETE https://api.example.com/v1/x'\n",
		.opts = policy_check_opts,
		.min = 1,
		.max = 2,
		.first = VERB_KIND,
		.run = policy_check_run,
	},
	{
		.name = "log",
		.args = "[SANDBOX]",
		.summary = "list allowed and blocked hosts",
		.about =
			"Lists the hosts that sandboxes requested, blocked hosts first, with the rule and the\n"
			"number of requests. It is a summary of the audit log.",
		.examples = "  sbx policy log demo\n",
		.opts = policy_log_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = policy_log_run,
	},
	{
		.name = "used",
		.args = "[SANDBOX]",
		.summary = "show how often each rule decided",
		.about =
			"Lists the rules of the policy with the number of decisions that each one made, by the\n"
			"audit log, and the time of the last one. A rule that was never used comes last.",
		.examples = "  sbx policy used --since 30d\n  sbx policy used --never\n",
		.opts = policy_used_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = policy_used_run,
	},
	{
		.name = "shrink",
		.args = "",
		.summary = "propose narrower rules from the log",
		.about =
			"Proposes rules that allow only what sandboxes requested, by the audit log. Three or more\n"
			"names below one domain become a pattern, if a rule has one. Proves that the new policy\n"
			"allows nothing more and denies no recorded request that is allowed now. Deny rules and\n"
			"addresses are kept. Nothing changes; --write FILE writes the new policy to FILE.",
		.examples = "  sbx policy shrink --since 30d\n"
			    "  sbx policy shrink --write new.policy\n"
			    "  sbx policy import new.policy\n",
		.opts = policy_shrink_opts,
		.run = policy_shrink_run,
	},
	{
		.name = "replay",
		.args = "FILE [SANDBOX]",
		.summary = "decide recorded requests again with a file",
		.about =
			"Decides each request in the audit log again, with the policy in FILE (- for stdin), and\n"
			"lists the hosts that would be denied or allowed now. Nothing changes and nothing is sent.\n"
			"Requests that were denied for another reason than the rules are counted only. With\n"
			"--no-new-allow, the exit status is 1 if FILE allows something that was denied.",
		.examples = "  sbx policy replay team.policy\n"
			    "  sbx policy replay --no-new-allow --since 7d team.policy demo\n",
		.opts = policy_replay_opts,
		.min = 1,
		.max = 2,
		.first = VERB_PATH,
		.run = policy_replay_run,
	},
	{
		.name = "diff",
		.args = "[OLD] NEW",
		.summary = "show whether a policy allows more than another",
		.about =
			"Shows whether the policy in the file NEW allows something that the one in the file OLD,\n"
			"or else the current policy, denies, and the reverse. The answer is a proof over all\n"
			"hosts, ports, sandboxes and times, or an example. Rules about requests must be equal.\n"
			"The exit status is 0 if NEW allows nothing more.",
		.examples =
			"  sbx policy diff team.policy\n  sbx policy diff old.policy new.policy\n",
		.opts = policy_diff_opts,
		.min = 1,
		.max = 2,
		.first = VERB_PATH,
		.run = policy_diff_run,
	},
	{
		.name = "export",
		.args = "[FILE]",
		.summary = "write the policy as text",
		.about =
			"Writes the policy as text to FILE or to stdout, for review or for import on another\n"
			"machine.",
		.examples = "  sbx policy export team.policy\n",
		.opts = policy_export_opts,
		.max = 1,
		.first = VERB_PATH,
		.run = policy_export_run,
	},
	{
		.name = "import",
		.args = "FILE",
		.summary = "replace the policy with a file",
		.about =
			"Replaces the policy with the text in FILE (- for stdin). Shows the changes and prompts\n"
			"for confirmation; use --yes if stdin is not a terminal. A file with an error is rejected\n"
			"with the line number.",
		.examples = "  sbx policy import team.policy\n",
		.opts = policy_import_opts,
		.min = 1,
		.max = 1,
		.first = VERB_PATH,
		.run = policy_import_run,
	},
	{
		.name = "reset",
		.args = "",
		.summary = "remove the policy: all traffic is denied",
		.about =
			"Removes all rules, including your own. All traffic is denied until a policy is set again.\n"
			"Prompts for confirmation; use --yes if stdin is not a terminal.",
		.examples = "  sbx policy reset --yes\n",
		.opts = policy_reset_opts,
		.run = policy_reset_run,
	},
	{0},
};

const struct verb verb_policy = {
	.name = "policy",
	.group = "management",
	.args = "COMMAND",
	.summary = "manage the network policy",
	.about =
		"The policy defines the hosts that sandboxes can reach, and the requests that they can\n"
		"send. A rule applies to all sandboxes or to one. Deny rules take precedence. The default is\n"
		"deny. Changes apply to running sandboxes immediately.",
	.examples = "  sbx policy set-default balanced\n"
		    "  sbx policy allow network example.com\n"
		    "  sbx policy check network https://example.com/\n",
	.subs = subs,
};
