/*
 * spec_internal - shared by the files of lib/spec only.
 *
 * How      spec_check_given checks each field that is there by itself; spec_check asks for the
 *          whole.
 * Trust    As spec.h.
 */
#pragma once

#include "spec.h"

int spec_check_given(const struct spec *spec, struct err *err) MUST_CHECK;
