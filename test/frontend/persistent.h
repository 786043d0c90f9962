/* SPDX-License-Identifier: BSD-3-Clause
 *
 * PERSISTENT(Allreduce) is the function that makes a persistent request: MPI_Allreduce_init of MPI
 * 4, or in Open MPI 4.1 MPIX_Allreduce_init, an extension. */
#pragma once

#include <mpi.h>
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif
