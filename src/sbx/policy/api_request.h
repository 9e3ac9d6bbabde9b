/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_request - the effects of one request, as `sbx api test` prints them.
 *
 * How      The text is a method and a URL. The path goes through canon_normal_path, as in the
 *          proxy, then through the pack of the host.
 * Trust    The user's own arguments and files.
 */
#pragma once

#include "lib/client/cli/opt.h"
#include "lib/rules/pack/packs.h"

/* Text as `DELETE https://api.example.com/v1/things/7`; gives an exit status. */
int api_request_test(const struct packs *all, const char *text, const struct opts *o);
