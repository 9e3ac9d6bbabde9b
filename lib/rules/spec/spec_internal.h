/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spec_internal - shared by the files of lib/rules/spec only.
 *
 * How      spec_check_given checks each existing field; spec_check also checks that all are
 *          complete.
 * Trust    As spec.h.
 */
#pragma once

#include "spec.h"

struct json_t *spec_ports_to_json(const struct spec *spec);
int spec_check_ports(const struct spec *spec, struct err *err) MUST_CHECK;
bool spec_same_ports(const struct spec *a, const struct spec *b);
int spec_check_given(const struct spec *spec, struct err *err) MUST_CHECK;
