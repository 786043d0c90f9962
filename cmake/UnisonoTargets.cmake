# How this project declares its targets, so that every folder is one line.

option(UNISONO_TESTS "Build the tests" ON)
option(UNISONO_BENCH "Build the micro benchmarks" OFF)
option(UNISONO_FUZZ "Build the fuzzers as libFuzzer programs (needs clang)" OFF)
set(UNISONO_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

add_library(unisono_flags INTERFACE)
target_compile_options(unisono_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-sign-conversion>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-field-initializers>
  -Wswitch-enum -ffp-contract=off -fvisibility=hidden)
target_include_directories(unisono_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(unisono_flags INTERFACE UNISONO_VERSION="${PROJECT_VERSION}")
if(UNISONO_SANITIZE)
  target_compile_options(unisono_flags INTERFACE
    -fsanitize=${UNISONO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(UNISONO_SANITIZE MATCHES "address.*undefined" AND NOT UNISONO_FUZZ)
    # The address sanitizer sees most of the accesses that these look for; without them sources
    # compile faster.
    target_compile_options(unisono_flags INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
  target_link_options(unisono_flags INTERFACE -fsanitize=${UNISONO_SANITIZE})
  # Sanitizers look at code that runs. The release's compiler checks code for AVX-512 on every machine.
  include(CheckCXXSourceRuns)
  check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"avx512bw\") ? 0 : 1; }"
                        UNISONO_RUNS_AVX3)
  if(NOT UNISONO_RUNS_AVX3)
    target_compile_definitions(unisono_flags INTERFACE UNISONO_WITHOUT_AVX3)
  endif()
endif()

if(UNISONO_FUZZ)
  target_compile_options(unisono_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(unisono_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The most included headers, compiled once: this saves half of a build. The debug preset and builds
# with ccache do without, and show that each source includes what it needs.
option(UNISONO_PRECOMPILE "Precompile the headers that most sources include" OFF)
if(UNISONO_PRECOMPILE)
  # Joined sources are large: GCC spends a tenth of its time on its own garbage there, unless it may
  # have a gigabyte (here in KiB).
  target_compile_options(unisono_flags INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)
endif()

# unisono_precompile(TARGET KIND [header ...])
# Targets of one kind share them, so they have to be compiled with the same options and macros.
function(unisono_precompile target kind)
  if(NOT UNISONO_PRECOMPILE)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY UNISONO_PRECOMPILED_${kind})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    set_property(GLOBAL PROPERTY UNISONO_PRECOMPILED_${kind} ${target})
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <functional> <map>
      <memory> <optional> <span> <string> <vector> <fmt/format.h> ${ARGN})
  endif()
endfunction()

# unisono_together(TARGET [MOST])
# Where headers are precompiled, all sources of the target, or so many at a time, are compiled as one,
# in a third of the time; their anonymous namespaces must not clash, so each source of a test is in
# a namespace of its own name.
function(unisono_together target)
  set(most 0 ${ARGN})
  list(GET most -1 most)
  if(UNISONO_PRECOMPILE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${most})
  endif()
endfunction()

# unisono_folder(NAME [TOGETHER] [WAITS] [THIN] [DEPENDS folder ...] [LINK library ...] [WITHOUT file ...])
# One object library for a folder of src/; DEPENDS names lower folders only. WITHOUT leaves sources
# out that another target compiles. TOGETHER: see unisono_together. WAITS: its code computes little, so
# that a build with the thread sanitizer does not optimize it. THIN: tests spend little time in it, so
# that a build with the address sanitizer does not either, unless it is for fuzzers.
function(unisono_folder name)
  cmake_parse_arguments(ARG "TOGETHER;WAITS;THIN" "" "DEPENDS;LINK;WITHOUT" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  foreach(file IN LISTS ARG_WITHOUT)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${file})
  endforeach()
  if(NOT sources)
    message(FATAL_ERROR "src/${name} holds no .cpp file")
  endif()
  add_library(unisono_${name} OBJECT ${sources})
  target_link_libraries(unisono_${name} PUBLIC unisono_flags ${ARG_LINK})
  foreach(lower IN LISTS ARG_DEPENDS)
    target_link_libraries(unisono_${name} PUBLIC unisono_${lower})
  endforeach()
  set(kind library)
  if((ARG_WAITS AND UNISONO_SANITIZE MATCHES thread) OR
     (ARG_THIN AND UNISONO_SANITIZE AND NOT UNISONO_FUZZ))
    set(kind waiting_library)  # a source and its precompiled header need the same optimization
    unisono_optimize_little(unisono_${name})
  endif()
  unisono_precompile(unisono_${name} ${kind})
  if(ARG_TOGETHER)
    unisono_together(unisono_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY UNISONO_FOLDERS unisono_${name})
endfunction()

# unisono_leave_out(NAME): this test is neither built nor run in this build. ./dev test prints them.
function(unisono_leave_out name)
  set_property(GLOBAL APPEND PROPERTY UNISONO_LEFT_OUT ${name})
endfunction()

# Programs that are built for `./dev test --all` only.
add_custom_target(slow_tests)

# unisono_is_left_to_sanitizers(RESULT): does this build leave tests that are SANITIZED_ONLY to those with
# sanitizers? The debug preset, for work on one's own machine, has all.
function(unisono_is_left_to_sanitizers result)
  if(UNISONO_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL Debug)
    set(${result} FALSE PARENT_SCOPE)
  else()
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# unisono_only_with_all(TEST PROGRAM [label ...]): the test is slow, and nobody builds its program but
# for that. unisono_test calls it for a program with this label, too.
function(unisono_only_with_all test program)
  set(labels ${ARGN} slow)
  list(REMOVE_DUPLICATES labels)
  set_tests_properties(${test} PROPERTIES LABELS "${labels}")
  set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  add_dependencies(slow_tests ${program})
  set_property(GLOBAL APPEND PROPERTY UNISONO_WHOLE_WITH_ALL ${test})
endfunction()

# unisono_leaves_out(RESULT NAME [label ...]): does a label leave the test out under this sanitizer?
function(unisono_leaves_out result name)
  set(${result} FALSE PARENT_SCOPE)
  if((UNISONO_SANITIZE MATCHES address AND no_asan IN_LIST ARGN) OR
     (UNISONO_SANITIZE MATCHES thread AND no_tsan IN_LIST ARGN))
    unisono_leave_out(${name})
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# unisono_keep_threaded(VARIABLE NAME source ...)
# Under the thread sanitizer, the variable keeps the sources named (without _test.cpp): there
# is nothing to see in tests whose work is done by one thread. An error names one that is forgotten. It
# does not look for World, which starts a job by threads and then does all work in one.
function(unisono_keep_threaded variable name)
  if(NOT UNISONO_SANITIZE MATCHES thread)
    return()
  endif()
  list(JOIN ARGN "|" threaded)
  set(kept ${${variable}})
  list(FILTER kept INCLUDE REGEX "/(${threaded})_test\\.cpp$")
  set(others ${${variable}})
  list(REMOVE_ITEM others ${kept})
  foreach(source IN LISTS others)
    file(STRINGS ${source} found
         REGEX "std::j?thread|std::async|threads.hpp\"|served_rendezvous|fake_launcher")
    if(found)
      message(FATAL_ERROR "${source} has threads: name it where ${name} is declared")
    endif()
  endforeach()
  string(REPLACE "|" "," threaded "${threaded}")
  unisono_leave_out("${name}(but:${threaded})")
  set(${variable} ${kept} PARENT_SCOPE)
endfunction()

# unisono_optimize_little(TARGET)
# Half the time to compile; warnings that follow the flow of values stay.
function(unisono_optimize_little target)
  if(UNISONO_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
  endif()
endfunction()

# unisono_hide_lines(TARGET)
# A twentieth of the time to compile, and programs of half the length. No sanitizer prints the lines of
# a release's tests.
function(unisono_hide_lines target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-g0>)
endfunction()

# unisono_precompile_test(TARGET KIND WORLD)
# If WORLD is true, the headers of communicators, too. clang alone gains by them: GCC takes as long to
# precompile these as they save in all tests.
function(unisono_precompile_test target kind world)
  set(headers <gtest/gtest.h> <thread>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    list(APPEND headers <filesystem> <fstream> <set>)
    if(world)
      string(APPEND kind _of_world)
      list(APPEND headers ${PROJECT_SOURCE_DIR}/test/harness/world.hpp)
    endif()
  endif()
  unisono_precompile(${target} ${kind} ${headers})
endfunction()

# unisono_test_harness(NAME SOURCES file ... [WORLD] [COMPUTES])
# The common part of several test programs, compiled once; they LINK it. COMPUTES: see unisono_test.
function(unisono_test_harness name)
  cmake_parse_arguments(ARG "WORLD;COMPUTES" "" "SOURCES" ${ARGN})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC unisono_inner unisono_flags GTest::gtest)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/test)
  # As programs are, whose precompiled headers it shares.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE)
  set(kind test)
  if(NOT ARG_COMPUTES)
    set(kind short_test)
    unisono_optimize_little(${name})
  endif()
  unisono_hide_lines(${name})
  unisono_precompile_test(${name} ${kind} ${ARG_WORLD})
endfunction()

# unisono_test(NAME SOURCES file ... [LABELS label ...] [LINK library ...] [COST seconds]
#              [COMPUTES] [SANITIZED filter] [SANITIZED_ONLY] [WORLD] [PARTS name=filter ...])
# One test program with GoogleTest's main, on the library's inner parts. Labels with a meaning: `slow`
# is for --all, `root` needs it, and `no_asan`, `no_tsan` leave a test out where that sanitizer has
# nothing to see: the thread sanitizer in a program whose work is done by one thread. Tests with
# a COST start first, so that no core is idle at the end. Most take longer to compile than their own
# code runs, so it is optimized little, except what COMPUTES. A long test has a part that says
# most about memory and threads: SANITIZED, a filter of GoogleTest. Under sanitizers that part is a
# test, and the whole is slow. NONE: there is no part. SANITIZED_ONLY: one thread does the same
# in each build, so that the address sanitizer's has all there is to see; in a release it is slow.
# WORLD: it includes the headers of communicators, which take longer to read than most tests. PARTS:
# these cases are tests of their own, which run beside the test NAME, which has all others. So sources
# whose templates are the same are compiled together, and run as if each were a program.
# SANITIZED is about those others: the parts run whole in each build.
function(unisono_test name)
  cmake_parse_arguments(ARG "COMPUTES;SANITIZED_ONLY;WORLD" "COST;SANITIZED" "SOURCES;LABELS;LINK;PARTS" ${ARGN})
  list(TRANSFORM ARG_PARTS REPLACE "=.*" "" OUTPUT_VARIABLE parts)
  list(TRANSFORM ARG_PARTS REPLACE "^[^=]*=" "" OUTPUT_VARIABLE filters)
  unisono_leaves_out(left_out ${name} ${ARG_LABELS})
  if(left_out)
    foreach(part IN LISTS parts)
      unisono_leave_out(${part})
    endforeach()
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE unisono_inner unisono_flags GTest::gtest GTest::gtest_main
                        ${ARG_LINK})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test)
  set(kind test)
  if(NOT ARG_COMPUTES)
    set(kind short_test)
    unisono_optimize_little(${name})
  endif()
  unisono_hide_lines(${name})
  unisono_precompile_test(${name} ${kind} ${ARG_WORLD})
  unisono_together(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  set(tests ${name} ${parts})
  set(arguments)
  foreach(part filter IN ZIP_LISTS parts filters)
    add_test(NAME ${part} COMMAND ${name} --gtest_filter=${filter})
  endforeach()
  if(filters)
    list(JOIN filters ":" filters)
    list(APPEND arguments --gtest_filter=-${filters})
  endif()
  add_test(NAME ${name} COMMAND ${name} ${arguments})
  set_tests_properties(${tests} PROPERTIES LABELS "${ARG_LABELS}")
  unisono_is_left_to_sanitizers(is_left)
  if((is_left AND ARG_SANITIZED_ONLY) OR (UNISONO_SANITIZE AND ARG_SANITIZED STREQUAL NONE) OR
     slow IN_LIST ARG_LABELS)
    unisono_only_with_all(${name} ${name} ${ARG_LABELS})
  elseif(UNISONO_SANITIZE AND ARG_SANITIZED)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS};slow")
    set_property(GLOBAL APPEND PROPERTY UNISONO_WHOLE_WITH_ALL ${name})
    list(APPEND tests ${name}_part)
    add_test(NAME ${name}_part COMMAND ${name} --gtest_filter=${ARG_SANITIZED})
    set_tests_properties(${name}_part PROPERTIES LABELS "${ARG_LABELS}")
  endif()
  if(ARG_COST)
    set_tests_properties(${tests} PROPERTIES COST ${ARG_COST})
  endif()
  unisono_test_without_cache(${tests})
endfunction()

# Not with the machine file of the user who runs the test.
function(unisono_test_without_cache)
  set_tests_properties(${ARGN} PROPERTIES
    ENVIRONMENT_MODIFICATION "XDG_CACHE_HOME=set:${CMAKE_BINARY_DIR}/test/no_cache")
endfunction()

# unisono_test_again(NAME PROGRAM [ARGUMENTS argument ...] [LABELS label ...])
# Another run of a program that unisono_test has declared, or left out. A program of which nothing
# but a part runs under sanitizers has no other run there, either, but for those that are slow.
function(unisono_test_again name program)
  cmake_parse_arguments(ARG "" "" "ARGUMENTS;LABELS" ${ARGN})
  if(NOT TARGET ${program})
    unisono_leave_out(${name})
    return()
  endif()
  add_test(NAME ${name} COMMAND ${program} ${ARG_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  unisono_test_without_cache(${name})
endfunction()
