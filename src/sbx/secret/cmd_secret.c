/* SPDX-License-Identifier: Apache-2.0 */
#include "secret_verbs.h"
#include "secret.h"

#define ABOUT_VALUE                                                                               \
	"The value is read from a prompt without echo, or from stdin, and sent directly to the\n" \
	"vault. Sandboxes never receive it."

static const struct verb subs[] = {
	{
		.name = "set",
		.args = "[SERVICE]",
		.summary = "set the credential of a service",
		.about =
			"Sets the credential of a service (sbx secret services lists them), for all sandboxes or\n"
			"for one. The change applies to running sandboxes "
			"immediately.\n" ABOUT_VALUE "\n\n"
			"With --ref or --command, no value is stored: a program is run when the value is needed.\n"
			"With --registry, the credential is for a private container registry.",
		.examples = "  sbx secret set anthropic\n"
			    "  sbx secret set --sandbox demo github < token\n"
			    "  sbx secret set --registry registry.example.com --user ci\n"
			    "  sbx secret set openai --ref op://work/openai/key\n"
			    "  sbx secret set github --command 'gh auth token' --refresh 30m\n",
		.opts = secret_set_opts,
		.max = 1,
		.first = VERB_SERVICE,
		.run = secret_set_run,
	},
	{
		.name = "set-custom",
		.args = "--host HOST NAME",
		.summary = "set a credential for your own hosts",
		.about =
			"Sets a credential for your own hosts. sbx adds it to one header of HTTPS requests to these\n"
			"hosts.\n" ABOUT_VALUE,
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
		.about =
			"Searches your environment for the variables of the services, lists the credentials that\n"
			"would be set and prompts for confirmation. If stdin is not a terminal, it only lists them,\n"
			"unless --yes is given. Existing credentials are kept unless --force is given.",
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
		.about =
			"Lists the credentials: scope, kind, masked value, hosts and last use. No command prints a\n"
			"value.",
		.examples = "  sbx secret ls\n  sbx secret ls --sandbox demo --json\n",
		.opts = secret_ls_opts,
		.run = secret_ls_run,
	},
	{
		.name = "rm",
		.args = "NAME",
		.summary = "remove a credential",
		.about =
			"Removes a credential. The change applies to running sandboxes immediately. Prompts for\n"
			"confirmation; use --force if stdin is not a terminal.",
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
		.about =
			"Lets one sandbox use its own credentials for a service, such as a key that you typed\n"
			"inside. sbx does not intercept the hosts of the service in this sandbox: it adds no\n"
			"credential and denies none. The audit log records the change. Open connections are not\n"
			"affected.",
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
			"Searches a file, stdin or a sandbox for the values of all stored credentials, as text and\n"
			"encoded in hex, base64 and percent form. Of a sandbox, its memory while it runs, its\n"
			"disks, its logs and its audit log are searched. Prints names, never a value. The exit\n"
			"status is 1 if a credential is found.",
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
		.about =
			"Lists the services: the variables that contain a placeholder in sandboxes, and the hosts\n"
			"that receive the credential. A service is a file. A file with an error is printed with\n"
			"its line, and the exit status is 1.",
		.examples = "  sbx secret services\n",
		.opts = secret_services_opts,
		.run = secret_services_run,
	},
	{
		.name = "status",
		.args = "",
		.summary = "show how credentials are stored",
		.about =
			"Shows where the key of the vault is stored, the kind of memory that holds the values, and\n"
			"whether the vault is locked. The exit status is 1 if the vault cannot be used.",
		.examples = "  sbx secret status\n",
		.opts = secret_status_opts,
		.run = secret_status_run,
	},
	{
		.name = "unlock",
		.args = "",
		.summary = "unlock the vault with its passphrase",
		.about =
			"Unlocks a vault whose key is derived from a passphrase, read from a prompt or from stdin.\n"
			"The first passphrase creates the vault (sbx settings set vault.key passphrase). The vault\n"
			"stays unlocked until it exits.",
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
	.about =
		"Credentials stay on the host. Programs in a sandbox see a placeholder. sbx replaces it with\n"
		"the real value in requests to the hosts of the service, over verified TLS only.",
	.examples = "  sbx secret set anthropic\n"
		    "  sbx secret import\n"
		    "  sbx secret ls\n",
	.subs = subs,
};
