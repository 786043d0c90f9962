// SPDX-License-Identifier: BSD-3-Clause
// An error handler of the program throws: the exception reaches the program's call, which may go
// on with other communicators. An operator of the program throws: all ranks get an error. Prints
// "fine" at rank 0.
#include <exception>
#include <stdexcept>
#include <vector>

#include "scenario.h"

namespace {

int handled = 0;

void throw_error(MPI_Comm*, int* code, ...) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(*code, text, &length);
  ++handled;
  throw std::runtime_error(text);
}

template <class Call>
void expect_one_exception(const Call& call) {
  const int before = handled;
  bool is_caught = false;
  try {
    call();
  } catch (const std::runtime_error& error) {
    is_caught = error.what()[0] != '\0';
  }
  EXPECT(is_caught);
  EXPECT(handled == before + 1);
  EXPECT(std::uncaught_exceptions() == 0);
}

MPI_Comm throwing_duplicate(MPI_Errhandler handler) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_set_errhandler(made, handler);
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made);
  EXPECT(sum == size);
  return made;
}

// All ranks get an error, for one rank's count is another.
void unlike(MPI_Errhandler handler) {
  MPI_Comm made = throwing_duplicate(handler);
  int in[2] = {1, 1}, out[2];
  expect_one_exception([&] { MPI_Allreduce(in, out, rank == 0 ? 1 : 2, MPI_INT, MPI_SUM, made); });
  MPI_Comm_free(&made);
}

void unlike_later(MPI_Errhandler handler) {
  MPI_Comm made = throwing_duplicate(handler);
  int in[2] = {1, 1}, out[2];
  MPI_Request request = MPI_REQUEST_NULL;
  expect_one_exception([&] {
    MPI_Iallreduce(in, out, rank == 0 ? 1 : 2, MPI_INT, MPI_SUM, made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  EXPECT(request == MPI_REQUEST_NULL);
  MPI_Comm_free(&made);
}

// An argument that the host MPI refuses.
void invalid(MPI_Errhandler handler) {
  MPI_Comm made = throwing_duplicate(handler);
  int value = 0;
  expect_one_exception([&] { MPI_Bcast(&value, 1, MPI_INT, size, made); });
  expect_one_exception([&] { MPI_Bcast(&value, -1, MPI_INT, 0, made); });
  MPI_Comm_free(&made);
}

void throw_exception(void*, void*, int*, MPI_Datatype*) {
  throw std::runtime_error("there is no such sum");
}
void throw_number(void*, void*, int*, MPI_Datatype*) { throw 7; }

template <class Call>
void expect_failure(int code, const char* words, const Call& call_again) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  EXPECT(code != MPI_SUCCESS);
  MPI_Error_string(code, text, &length);
  EXPECT(strstr(text, words) != nullptr);
  EXPECT(call_again() != MPI_SUCCESS);  // the communicator has failed
  EXPECT(std::uncaught_exceptions() == 0);
}

// The function throws where it first runs, which is one rank or more.
void fail_by(MPI_User_function* function, const char* words, int count, MPI_Errhandler handler) {
  for (int commutes = 0; commutes < 2; ++commutes) {
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(function, commutes, &op);
    std::vector<int> in(static_cast<size_t>(count), 1), out(in);
    const auto call = [&](MPI_Comm on) {
      return MPI_Allreduce(in.data(), out.data(), count, MPI_INT, op, on);
    };
    MPI_Comm made = throwing_duplicate(handler);
    expect_one_exception([&] { call(made); });
    MPI_Comm_free(&made);
    made = throwing_duplicate(handler);
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    expect_failure(call(made), words, [&] { return call(made); });
    MPI_Comm_free(&made);
    MPI_Op_free(&op);
  }
}

void in_operator(MPI_Errhandler handler) {
  for (const int count : {1, 1000, 100000}) {
    fail_by(throw_exception, "there is no such sum", count, handler);
    fail_by(throw_number, "its function throws", count, handler);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Without threads: MPICH 5 calls the handler with a lock held where there may be some.
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(throw_error, &handler);
  const char* const named = argc > 1 ? argv[1] : "";
  if (strcmp(named, "invalid") == 0) {
    invalid(handler);
  } else if (strcmp(named, "in_operator") == 0) {
    in_operator(handler);
  } else {
    unlike(handler);
    unlike_later(handler);
  }
  MPI_Errhandler_free(&handler);
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(sum == size);
  if (rank == 0) puts("fine");
  MPI_Finalize();
}
