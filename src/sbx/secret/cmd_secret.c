/* SPDX-License-Identifier: Apache-2.0 */
#include "secret_verbs.h"
#include "secret.h"

#define ABOUT_VALUE                                                                            \
	"The value is typed at a prompt that does not show it, or comes from stdin. It goes\n" \
	"straight to the vault; no sandbox ever gets it."

static const struct verb subs[] = {
	{
		.name = "set",
		.args = "SERVICE",
		.summary = "set the credential of a service",
		.about = "Sets the credential of a service (sbx secret services lists them), for "
			 "all sandboxes\n"
			 "or for one. " ABOUT_VALUE "\n"
			 "Running sandboxes have it at once. With --ref or --command the value "
			 "is not kept: a\n"
			 "program of yours is asked for it when it is needed.",
		.examples = "  sbx secret set anthropic\n"
			    "  sbx secret set --sandbox demo github < token\n"
			    "  sbx secret set github --command 'gh auth token' --refresh 30m\n",
		.opts = secret_set_opts,
		.min = 1,
		.max = 1,
		.first = VERB_SERVICE,
		.run = secret_set_run,
	},
	{
		.name = "set-custom",
		.args = "--host HOST NAME",
		.summary = "set a credential for your own hosts",
		.about = "Sets a credential that goes into one header of requests to the hosts "
			 "you name, on\n"
			 "HTTPS. " ABOUT_VALUE,
		.examples = "  sbx secret set-custom --host api.example.com --env EXAMPLE_KEY "
			    "example\n"
			    "  sbx secret set-custom --host git.example.com:8443 --header "
			    "private-token forge\n",
		.opts = secret_custom_opts,
		.min = 1,
		.max = 1,
		.run = secret_custom_run,
	},
	{
		.name = "import",
		.args = "[SERVICE...]",
		.summary = "import credentials from your environment",
		.about = "Looks for the variables of the services in your environment, shows what "
			 "it would set\n"
			 "and asks. Without a terminal it only shows, unless --yes is given. "
			 "Credentials that\n"
			 "are there already stay, unless forced.",
		.examples = "  sbx secret import\n  sbx secret import --yes anthropic github\n",
		.opts = secret_import_opts,
		.max = 256,
		.first = VERB_SERVICE,
		.others = VERB_SERVICE,
		.run = secret_import_run,
	},
	{
		.name = "ls",
		.args = "",
		.summary = "list credentials, masked",
		.about = "Lists the credentials: for whom, of what kind, where they go, when they "
			 "were used last.\n"
			 "Values are masked; there is no command that shows one.",
		.examples = "  sbx secret ls\n  sbx secret ls --sandbox demo --json\n",
		.opts = secret_ls_opts,
		.run = secret_ls_run,
	},
	{
		.name = "rm",
		.args = "NAME",
		.summary = "remove a credential",
		.about = "Removes a credential. Running sandboxes lose it at once. On a terminal "
			 "it asks first;\n"
			 "without one it needs --force.",
		.examples = "  sbx secret rm anthropic\n  sbx secret rm --sandbox demo -f github\n",
		.opts = secret_rm_opts,
		.min = 1,
		.max = 1,
		.first = VERB_SECRET,
		.run = secret_rm_run,
	},
	{
		.name = "own",
		.args = "--sandbox NAME SERVICE",
		.summary = "let a sandbox use its own credentials",
		.about = "Lets one sandbox use its own credentials for a service, such as a key "
			 "that you typed\n"
			 "inside. The hosts of the service are not intercepted in this sandbox: "
			 "sbx adds no\n"
			 "credential there and refuses none. The audit log records the change. "
			 "Connections\n"
			 "that are open stay as they are.",
		.examples = "  sbx secret own anthropic --sandbox demo\n"
			    "  sbx secret own anthropic --sandbox demo --off\n",
		.opts = secret_own_opts,
		.min = 1,
		.max = 1,
		.first = VERB_SERVICE,
		.run = secret_own_run,
	},
	{
		.name = "scan",
		.args = "[FILE|-]",
		.summary = "search a file or a sandbox for credentials",
		.about =
			"The vault looks for every value it holds, as it is and in hex, base64 and "
			"percent form,\n"
			"in a file, in stdin, or in all that a sandbox is: its memory while it "
			"runs, its disks,\n"
			"logs and the audit log. Names come back, never a value. The exit status "
			"is 1 when one\n"
			"was found.",
		.examples = "  sbx secret scan build.log\n"
			    "  sbx secret scan --sandbox demo\n"
			    "  sbx secret scan --sandbox demo --what ram,disk --json\n",
		.opts = secret_scan_opts,
		.max = 1,
		.first = VERB_PATH,
		.run = secret_scan_run,
	},
	{
		.name = "services",
		.args = "",
		.summary = "list the services for credentials",
		.about = "Lists the services: the variables that sandboxes see a placeholder in, "
			 "and the hosts\n"
			 "that get the credential. A service is a file; one with a mistake is "
			 "named with its\n"
			 "line, and the exit status is 1.",
		.examples = "  sbx secret services\n",
		.opts = secret_services_opts,
		.run = secret_services_run,
	},
	{
		.name = "status",
		.args = "",
		.summary = "show how credentials are stored",
		.about = "Says where the key of the vault is, what memory values lie in, and "
			 "whether it is locked.\n"
			 "The exit status is 1 when it cannot be used.",
		.examples = "  sbx secret status\n",
		.opts = secret_status_opts,
		.run = secret_status_run,
	},
	{
		.name = "unlock",
		.args = "",
		.summary = "unlock the vault with its passphrase",
		.about = "Opens a vault whose key is a passphrase, typed or from stdin. The first "
			 "one makes it\n"
			 "(sbx settings set vault.key passphrase). It stays open until it ends.",
		.examples = "  sbx secret unlock\n",
		.opts = secret_unlock_opts,
		.run = secret_unlock_run,
	},
	{0},
};

const struct verb verb_secret = {
	.name = "secret",
	.group = "management",
	.args = "COMMAND",
	.summary = "manage credentials that sandboxes never see",
	.about = "Credentials stay on the host. Programs in a sandbox see a placeholder; the real "
		 "one is put\n"
		 "into requests on their way out, for the hosts of its service only, over "
		 "verified TLS.",
	.examples = "  sbx secret set anthropic\n"
		    "  sbx secret import\n"
		    "  sbx secret ls\n",
	.subs = subs,
};
