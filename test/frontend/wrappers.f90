! SPDX-License-Identifier: BSD-3-Clause
! Collectives by MPI's Fortran interface, some in place: its wrappers call the C functions.
program wrappers
  use mpi
  implicit none
  integer :: rank, ranks, error, total, i
  double precision :: values(3), sums(3)
  integer, allocatable :: all(:)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  values = [1d0 + rank, 2d0, 3d0 * rank]
  call MPI_Allreduce(values, sums, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (sums(1) /= ranks + ranks * (ranks - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  total = rank
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
  if (total /= ranks - 1) call MPI_Abort(MPI_COMM_WORLD, 4, error)
  allocate(all(ranks))
  all(rank + 1) = rank * rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
  do i = 1, ranks
    if (all(i) /= (i - 1) ** 2) call MPI_Abort(MPI_COMM_WORLD, 5, error)
  end do
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (rank == 0) print '(a)', 'fine'
  call MPI_Finalize(error)
end program
