/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_verbs.h"
#include "policy.h"

#define ABOUT_RESOURCES                                                                           \
	"RESOURCES are hosts with commas between: example.com, *.example.com (one label more),\n" \
	"**.example.com (any number), crl*.example.com, 192.0.2.1, 10.0.0.0/8, [2001:db8::1],\n"  \
	"** (every host), each perhaps with a port (:443) or ports (:8000-9000) behind it."

static const struct verb subs[] = {
	{
		.name = "set-default",
		.args = "PRESET",
		.summary = "choose the preset: allow-all, balanced or deny-all",
		.about = "Sets the rules that all sandboxes start from. The rules of the preset "
			 "before are\n"
			 "replaced; rules of your own stay.\n\n"
			 "allow-all   every public host, on every port; private addresses stay "
			 "closed\n"
			 "balanced    what building software needs: forges, packages, "
			 "documentation\n"
			 "deny-all    nothing, until you allow a host; with --lock no allow rule "
			 "has an effect",
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
		.about = "Another name of set-default. Without a preset it asks, on a terminal.",
		.examples = "  sbx policy init balanced\n",
		.opts = policy_default_opts,
		.max = 1,
		.first = VERB_PRESET,
		.run = policy_init_run,
	},
	{
		.name = "allow",
		.args = "network RESOURCES",
		.summary = "allow hosts",
		.about = "Adds a rule that allows hosts, for all sandboxes or for one; running "
			 "ones have it at\n"
			 "once. Without a port it means 80 and 443. A deny always wins over "
			 "it.\n\n" ABOUT_RESOURCES,
		.examples = "  sbx policy allow network example.com,*.example.com:443\n"
			    "  sbx policy allow network git.example.com:22 --sandbox demo --for "
			    "8h\n",
		.opts = policy_add_opts,
		.min = 1,
		.max = 257,
		.first = VERB_KIND,
		.run = policy_allow_run,
	},
	{
		.name = "deny",
		.args = "network RESOURCES",
		.summary = "deny hosts",
		.about = "Adds a rule that denies hosts, and says which allow rules it now "
			 "overrides. Without a\n"
			 "port it means every port.\n\n" ABOUT_RESOURCES,
		.examples = "  sbx policy deny network gist.github.com --comment 'no pastes'\n",
		.opts = policy_add_opts,
		.min = 1,
		.max = 257,
		.first = VERB_KIND,
		.run = policy_deny_run,
	},
	{
		.name = "rm",
		.args = "network",
		.summary = "remove rules",
		.about = "Removes the rule with an id, or takes resources out of the rules that "
			 "have them. What\n"
			 "is not there is an error, and then nothing is removed.",
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
		.about = "Lists the policy in short, or with --wide every rule; of a sandbox what "
			 "counts for it.",
		.examples = "  sbx policy ls\n  sbx policy ls demo --wide\n",
		.opts = policy_ls_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = policy_ls_run,
	},
	{
		.name = "inspect",
		.args = "ID",
		.summary = "show one rule",
		.about = "Shows one rule: what it says, where it comes from. The beginning of its "
			 "id is enough.",
		.examples = "  sbx policy inspect 3f2a90c1b47d\n",
		.opts = policy_inspect_opts,
		.min = 1,
		.max = 1,
		.run = policy_inspect_run,
	},
	{
		.name = "check",
		.args = "network TARGET",
		.summary = "show whether a target is allowed",
		.about = "Says whether a host, host:port or URL would be allowed, by which rule, "
			 "and if not what\n"
			 "to type. Without a port it is 443, or that of the URL. The exit status "
			 "is 1 when it\n"
			 "is denied. Nothing is looked up or connected to; a name that leads to a "
			 "private\n"
			 "address is still refused when it is used.",
		.examples = "  sbx policy check network https://example.com/x --sandbox demo\n",
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
		.about = "Lists the hosts that sandboxes asked for, the blocked ones first, with "
			 "the rule and\n"
			 "how often. It is a view of the audit log.",
		.examples = "  sbx policy log demo\n",
		.opts = policy_log_opts,
		.max = 1,
		.first = VERB_SANDBOX,
		.run = policy_log_run,
	},
	{
		.name = "export",
		.args = "[FILE]",
		.summary = "write the policy as text",
		.about = "Writes the whole policy as text that can be reviewed and imported "
			 "elsewhere, to FILE\n"
			 "or to stdout.",
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
		.about = "Replaces the whole policy by the text in FILE (- for stdin). Shows what "
			 "changes and\n"
			 "asks; without a terminal it needs --yes. A text with a fault is refused "
			 "with its line.",
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
		.about = "Removes every rule, your own included. Sandboxes reach nothing until "
			 "there is a policy\n"
			 "again. On a terminal it asks first; without one it needs --yes.",
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
	.about = "The policy says which hosts sandboxes may reach: rules that allow and rules that "
		 "deny, for\n"
		 "all of them or for one. Any deny wins, then any allow; what no rule allows is "
		 "denied.\n"
		 "Changes reach running sandboxes at once.",
	.examples = "  sbx policy set-default balanced\n"
		    "  sbx policy allow network example.com\n"
		    "  sbx policy check network https://example.com/\n",
	.subs = subs,
};
