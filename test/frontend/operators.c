/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints for each predefined operator and datatype what MPI_Allreduce, MPI_Iallreduce and MPI_Scan
 * give at the last rank: the class of the error, or the elements. The test compares the lines with
 * the bare MPI's. */
#include <complex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <mpi.h>

enum { kElements = 3, kBytes = 512, kCalls = 3 };

typedef enum { kInteger, kFloating, kComplex, kTruth } Kind;
typedef struct {
  const char* name;
  MPI_Datatype type;
  Kind kind;
  int bytes;     /* of the number, or of the first of a pair */
  int second_at; /* 0: there is none */
  Kind second;
  int second_bytes;
} Row;
typedef struct {
  const char* name;
  MPI_Op op;
} Operator;

static int rank, size;

static void write_number(char* at, Kind kind, int bytes, int value) {
  if (kind == kComplex) {
    write_number(at, kFloating, bytes / 2, value);
    write_number(at + bytes / 2, kFloating, bytes / 2, 1 - value);
  } else if (kind == kFloating) {
    const float narrow = (float)value;
    const double wide = value;
    const long double widest = value;
    memcpy(at,
           bytes == 4   ? (const void*)&narrow
           : bytes == 8 ? (const void*)&wide
                        : &widest,
           (size_t)bytes);
  } else {
    const int64_t number = kind == kTruth ? value != 0 : value;
    memcpy(at, &number, (size_t)bytes);
  }
}

static void print_number(const char* at, Kind kind, int bytes) {
  if (kind == kComplex) {
    print_number(at, kFloating, bytes / 2);
    print_number(at + bytes / 2, kFloating, bytes / 2);
  } else if (kind == kFloating) {
    float narrow;
    double wide;
    long double widest;
    memcpy(bytes == 4 ? (void*)&narrow : bytes == 8 ? (void*)&wide : &widest, at, (size_t)bytes);
    printf(" %Lg", bytes == 4 ? narrow : bytes == 8 ? wide : widest);
  } else {
    int64_t number = 0;
    memcpy(&number, at, (size_t)bytes);
    printf(" %lld", (long long)number);
  }
}

static int call(int which, const void* in, void* out, MPI_Datatype type, MPI_Op op) {
  if (which == 0) return MPI_Allreduce(in, out, kElements, type, op, MPI_COMM_WORLD);
  if (which == 1) return MPI_Scan(in, out, kElements, type, op, MPI_COMM_WORLD);
  MPI_Request request;
  const int code = MPI_Iallreduce(in, out, kElements, type, op, MPI_COMM_WORLD, &request);
  return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void run(const Row* row, const Operator* by) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(row->type, &lower, &extent);
  for (int which = 0; which < kCalls; ++which) {
    char in[kBytes] = {0}, out[kBytes] = {0};
    for (int i = 0; i < kElements; ++i) {
      char* const element = in + i * extent;
      write_number(element, row->kind, row->bytes, (rank + i) % 3);
      if (row->second_at != 0) {
        write_number(element + row->second_at, row->second, row->second_bytes, rank);
      }
    }
    const int code = call(which, in, out, row->type, by->op);
    if (rank + 1 < size) continue;
    int class = code;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    printf("%s %s %d:", by->name, row->name, which);
    if (code != MPI_SUCCESS) printf(class == MPI_ERR_OP ? " MPI_ERR_OP" : " another error");
    for (int i = 0; i < kElements && code == MPI_SUCCESS; ++i) {
      const char* const element = out + i * extent;
      print_number(element, row->kind, row->bytes);
      if (row->second_at != 0) {
        print_number(element + row->second_at, row->second, row->second_bytes);
      }
    }
    printf("\n");
  }
}

#define PLAIN(TYPE, KIND, BYTES) \
  { #TYPE, TYPE, KIND, BYTES, 0, kInteger, 0 }
#define PAIR(TYPE, KIND, BYTES, AT) \
  { #TYPE, TYPE, KIND, BYTES, AT, kInteger, 4 }
#define OP(NAME) \
  { #NAME, NAME }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  const Row rows[] = {
      PLAIN(MPI_CHAR, kInteger, 1),
      PLAIN(MPI_SIGNED_CHAR, kInteger, 1),
      PLAIN(MPI_UNSIGNED_CHAR, kInteger, 1),
      PLAIN(MPI_BYTE, kInteger, 1),
      PLAIN(MPI_WCHAR, kInteger, 4),
      PLAIN(MPI_SHORT, kInteger, 2),
      PLAIN(MPI_UNSIGNED_SHORT, kInteger, 2),
      PLAIN(MPI_INT, kInteger, 4),
      PLAIN(MPI_UNSIGNED, kInteger, 4),
      PLAIN(MPI_LONG, kInteger, 8),
      PLAIN(MPI_UNSIGNED_LONG, kInteger, 8),
      PLAIN(MPI_LONG_LONG, kInteger, 8),
      PLAIN(MPI_UNSIGNED_LONG_LONG, kInteger, 8),
      PLAIN(MPI_FLOAT, kFloating, 4),
      PLAIN(MPI_DOUBLE, kFloating, 8),
      PLAIN(MPI_LONG_DOUBLE, kFloating, 16),
      PLAIN(MPI_INT8_T, kInteger, 1),
      PLAIN(MPI_INT16_T, kInteger, 2),
      PLAIN(MPI_INT32_T, kInteger, 4),
      PLAIN(MPI_INT64_T, kInteger, 8),
      PLAIN(MPI_UINT8_T, kInteger, 1),
      PLAIN(MPI_UINT16_T, kInteger, 2),
      PLAIN(MPI_UINT32_T, kInteger, 4),
      PLAIN(MPI_UINT64_T, kInteger, 8),
      PLAIN(MPI_C_BOOL, kTruth, 1),
      PLAIN(MPI_C_FLOAT_COMPLEX, kComplex, 8),
      PLAIN(MPI_C_DOUBLE_COMPLEX, kComplex, 16),
      PLAIN(MPI_C_LONG_DOUBLE_COMPLEX, kComplex, 32),
      PLAIN(MPI_AINT, kInteger, 8),
      PLAIN(MPI_OFFSET, kInteger, 8),
      PLAIN(MPI_COUNT, kInteger, 8),
      PLAIN(MPI_CXX_BOOL, kTruth, 1),
      PLAIN(MPI_CXX_FLOAT_COMPLEX, kComplex, 8),
      PLAIN(MPI_CXX_DOUBLE_COMPLEX, kComplex, 16),
      PAIR(MPI_SHORT_INT, kInteger, 2, 4),
      PAIR(MPI_2INT, kInteger, 4, 4),
      PAIR(MPI_LONG_INT, kInteger, 8, 8),
      PAIR(MPI_FLOAT_INT, kFloating, 4, 4),
      PAIR(MPI_DOUBLE_INT, kFloating, 8, 8),
      PAIR(MPI_LONG_DOUBLE_INT, kFloating, 16, 16),
      PLAIN(MPI_CHARACTER, kInteger, 1),
      PLAIN(MPI_LOGICAL, kTruth, 4),
      PLAIN(MPI_INTEGER, kInteger, 4),
      PLAIN(MPI_INTEGER1, kInteger, 1),
      PLAIN(MPI_INTEGER2, kInteger, 2),
      PLAIN(MPI_INTEGER4, kInteger, 4),
      PLAIN(MPI_INTEGER8, kInteger, 8),
      PLAIN(MPI_REAL, kFloating, 4),
      PLAIN(MPI_REAL4, kFloating, 4),
      PLAIN(MPI_REAL8, kFloating, 8),
      PLAIN(MPI_DOUBLE_PRECISION, kFloating, 8),
      PLAIN(MPI_COMPLEX, kComplex, 8),
      PLAIN(MPI_DOUBLE_COMPLEX, kComplex, 16),
      PLAIN(MPI_COMPLEX8, kComplex, 8),
      PLAIN(MPI_COMPLEX16, kComplex, 16),
      PAIR(MPI_2INTEGER, kInteger, 4, 4),
      {"MPI_2REAL", MPI_2REAL, kFloating, 4, 4, kFloating, 4},
      {"MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION, kFloating, 8, 8, kFloating, 8}};
  const Operator operators[] = {OP(MPI_MAX),  OP(MPI_MIN),  OP(MPI_SUM),    OP(MPI_PROD),
                                OP(MPI_LAND), OP(MPI_BAND), OP(MPI_LOR),    OP(MPI_BOR),
                                OP(MPI_LXOR), OP(MPI_BXOR), OP(MPI_MINLOC), OP(MPI_MAXLOC)};
  MPI_Barrier(MPI_COMM_WORLD); /* nonblocking calls after it are the drop-in's */
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    int bytes = 0; /* the MPI may have no such type */
    if (rows[i].type == MPI_DATATYPE_NULL) continue;
    if (MPI_Type_size(rows[i].type, &bytes) != MPI_SUCCESS || bytes == 0) continue;
    for (size_t j = 0; j < sizeof operators / sizeof operators[0]; ++j)
      run(&rows[i], &operators[j]);
  }
  MPI_Finalize();
  return 0;
}
