! SPDX-License-Identifier: BSD-3-Clause
! Collectives by MPI's three Fortran interfaces, some in place: the wrappers call the C functions.
! USE_F08: use mpi_f08. USE_MPI: use mpi. Neither: mpif.h.
program wrappers
#if defined(USE_F08)
  use mpi_f08
  implicit none
#elif defined(USE_MPI)
  use mpi
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: rank, ranks, error, total, i
  double precision :: values(3), sums(3), pair(2), most(2)
  integer, allocatable :: all(:)
#ifndef USE_F08
  integer :: op, product
  external :: multiply
#endif
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
  pair = [dble(mod(rank + 1, ranks)), dble(rank)]
  call MPI_Allreduce(pair, most, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, error)
  if (most(2) /= max(0, ranks - 2)) call MPI_Abort(MPI_COMM_WORLD, 6, error)
  if (rank == 1) total = 77
  call MPI_Bcast(total, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  if (total /= 77) call MPI_Abort(MPI_COMM_WORLD, 7, error)
#ifndef USE_F08
  call MPI_Op_create(multiply, .true., op, error)
  call MPI_Allreduce(rank + 1, product, 1, MPI_INTEGER, op, MPI_COMM_WORLD, error)
  call MPI_Op_free(op, error)
  do i = 1, ranks
    if (mod(product, i) /= 0) call MPI_Abort(MPI_COMM_WORLD, 8, error)
  end do
#endif
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (rank == 0) print '(a)', 'fine'
  call MPI_Finalize(error)
end program

#ifndef USE_F08
subroutine multiply(a, b, length, datatype)
  implicit none
  integer :: length, datatype
  integer :: a(length), b(length)
  b = a * b
end subroutine
#endif
