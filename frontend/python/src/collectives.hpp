// SPDX-License-Identifier: BSD-3-Clause
// The collectives as Python calls them: each function checks its arguments and fills in a Call.
// `receive` may be None: then an array is made for the result. All throw BadArgument.
#pragma once

#include <nanobind/nanobind.h>

#include "arguments/whole.hpp"
#include "call.hpp"

namespace unisono::python {

// Stands for `send`, or for `recv` of a scatter's root.
nanobind::handle in_place();
void set_in_place(nanobind::handle object);

using nanobind::handle;

void prepare_barrier(Call& call);
void prepare_broadcast(Call& call, handle buffer, Whole root);
void prepare_reduce(Call& call, handle send, handle receive, handle op, Whole root);
void prepare_allreduce(Call& call, handle send, handle receive, handle op);
void prepare_allgather(Call& call, handle send, handle receive);
void prepare_gather(Call& call, handle send, handle receive, Whole root);
void prepare_scatter(Call& call, handle send, handle receive, Whole root);
void prepare_alltoall(Call& call, handle send, handle receive);
void prepare_reduce_scatter(Call& call, handle send, handle receive, handle op, handle counts);
void prepare_scan(Call& call, handle send, handle receive, handle op);
void prepare_exscan(Call& call, handle send, handle receive, handle op);
void prepare_allgatherv(Call& call, handle send, handle receive, handle counts,
                        handle displacements);
void prepare_many_to_many(Call& call, handle send, handle receive, handle counts, handle receives,
                          handle displacements);
void prepare_gatherv(Call& call, handle send, handle receive, handle counts, handle displacements,
                     Whole root);
void prepare_scatterv(Call& call, handle send, handle receive, handle counts, handle displacements,
                      Whole root);
void prepare_alltoallv(Call& call, handle send, handle send_counts, handle receive,
                       handle receive_counts, handle send_displacements,
                       handle receive_displacements);
void prepare_alltoallw(Call& call, handle send, handle send_counts, handle send_displacements,
                       handle send_types, handle receive, handle receive_counts,
                       handle receive_displacements, handle receive_types);

}  // namespace unisono::python
