/* SPDX-License-Identifier: BSD-3-Clause
 * unisono.h is C11: it compiles without C++ and without extensions, and its constants are what the
 * ABI says. Compiled, never run. */
#include <unisono/unisono.h>

_Static_assert(UNISONO_OK == 0, "success is zero");
_Static_assert(UNISONO_ERROR_PEER_ARGUMENT == 10, "codes do not move");
_Static_assert(UNISONO_FLOAT64_INT32 == 19, "types do not move");
_Static_assert(UNISONO_MAXLOC == 11, "operators do not move");
_Static_assert(sizeof(unisono_type_t) == 4 && sizeof(unisono_op_t) == 4, "handles are 32 bits");

int header_c11_links_c_names(unisono_comm_t comm);
int header_c11_links_c_names(unisono_comm_t comm) { return unisono_barrier(comm); }
