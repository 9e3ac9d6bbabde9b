/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_http_internal - the head of a request, parsed in place; for the files of api_http only.
 *
 * How      api_http_parse_length reads the framing headers and leaves the head as it is;
 *          api_http_parse_head then cuts it into strings.
 * Trust    As api_http.h.
 */
#pragma once

#include "api_http.h"

/* Notes the refusal; gives -EBADMSG. */
int api_http_refuse(struct api_http *h, int status, const char *why);
int api_http_parse_length(struct api_http *h) MUST_CHECK;
int api_http_parse_head(struct api_http *h) MUST_CHECK;
