/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4_internal.h"

/* Services whose name in the scope is in no label of their hosts. */
static const struct {
	const char *label, *service;
} other_names[] = {
	{"agreement-marketplace", "aws-marketplace"},
	{"contact-lens", "connect"},
	{"connect", "execute-api"}, /* participant.connect */
	{"deployment-marketplace", "aws-marketplace"},
	{"discovery-marketplace", "aws-marketplace"},
	{"email", "ses"},
	{"email-smtp", "ses"},
	{"iot", "IoTSecuredTunneling"},
	{"iot", "iot-jobs-data"},
	{"iot", "iotdata"},
	{"iot", "iotdevicegateway"},
	{"iotevents", "ioteventsdata"},
	{"mail-manager", "ses"},
	{"marketplace", "aws-marketplace"},
	{"memory-db", "memorydb"},
	{"migrationhub-config", "mgh"},
	{"oidc", "sso-oauth"},
	{"pinpoint", "mobiletargeting"},
	{"queue", "sqs"},
	{"reporting-marketplace", "aws-marketplace"},
	{"sso", "awsssoportal"},
};

bool sigv4_is_s3(struct slice service)
{
	return slice_eq_str(service, "s3") || slice_eq_str(service, "s3express") ||
	       (service.n > 3 && memcmp(service.p, "s3-", 3) == 0);
}

static bool cut_suffix(struct slice *host, const char *suffix)
{
	size_t n = strlen(suffix);

	if (host->n <= n || memcmp(host->p + host->n - n, suffix, n) != 0)
		return false;
	host->n -= n;
	return true;
}

/* Cuts the last label off. */
static struct slice last_label(struct slice *name)
{
	size_t n = name->n;

	while (n > 0 && name->p[n - 1] != '.')
		n--;
	struct slice label = slice_of(name->p + n, name->n - n);

	name->n = n > 0 ? n - 1 : 0;
	return label;
}

/* eu-west-1, us-gov-east-1: letters and hyphens, a digit at the end. */
static bool is_region(struct slice s)
{
	size_t hyphens = 0;

	if (s.n < 6 || s.p[2] != '-' || s.p[s.n - 2] != '-' || s.p[s.n - 1] < '1' ||
		s.p[s.n - 1] > '9')
		return false;
	for (size_t i = 0; i + 1 < s.n; i++) {
		if (s.p[i] != '-' && (s.p[i] < 'a' || s.p[i] > 'z'))
			return false;
		hyphens += s.p[i] == '-';
	}
	return hyphens >= 2;
}

static bool is_of_label(struct slice label, struct slice service)
{
	if (memmem(label.p, label.n, service.p, service.n))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(other_names); i++)
		if (slice_eq_str(label, other_names[i].label) &&
			slice_eq_str(service, other_names[i].service))
			return true;
	return false;
}

static const char *service_misfit(struct slice name, struct slice service)
{
	struct slice label = last_label(&name);
	bool is_s3;

	if (slice_eq_str(label, "dualstack") || slice_eq_str(label, "vpce"))
		label = last_label(&name);
	is_s3 = sigv4_is_s3(label);
	if (is_s3 != sigv4_is_s3(service) && (is_s3 || slice_eq_str(service, "s3")))
		return "the signature is for another service than the host's";
	if (is_s3)
		return NULL;
	for (; label.n > 0; label = last_label(&name))
		if (is_of_label(label, service))
			return NULL;
	return "the signature is for another service than the host's";
}

const char *sigv4_host_misfit(struct slice host, struct slice service, struct slice region)
{
	struct slice name = host, rest, label;

	if (!cut_suffix(&name, ".amazonaws.com") && !cut_suffix(&name, ".amazonaws.com.cn") &&
		!cut_suffix(&name, ".api.aws"))
		return NULL;
	rest = name;
	label = last_label(&rest);
	if (label.n > 3 && memcmp(label.p, "s3-", 3) == 0 &&
		is_region(slice_of(label.p + 3, label.n - 3))) { /* s3-eu-west-1: an old name */
		if (!slice_eq(slice_of(label.p + 3, label.n - 3), region))
			return "the signature is for another region than the host's";
		return service_misfit(name, service);
	}
	if (!is_region(label))
		return service_misfit(name, service);
	if (!slice_eq(label, region))
		return "the signature is for another region than the host's";
	return service_misfit(rest, service);
}
