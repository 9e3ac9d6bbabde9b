/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_internal - what the files of lib/secret/service share.
 *
 * How      Small functions on the names and values of a request.
 * Trust    The bytes are a guest's.
 * Owns     Nothing.
 * See      service.h
 */
#pragma once

#include "service.h"

/* Removes percent escapes, once. False: the result does not fit. */
bool service_unescape(struct slice s, uint8_t *buf, size_t size, struct slice *ret) MUST_CHECK;
/* The name of a field of a query, into `buf` of the same size: a '+' is a blank, and servers drop
 * blanks at both ends. */
struct slice service_field_name(struct slice s, uint8_t *buf);
/* Whether they are the same without regard to case. */
bool service_is_word(struct slice s, const char *word);
