# How this project declares its targets, so that every folder is one line.

option(UNISONO_TESTS "Build the tests" ON)
option(UNISONO_BENCH "Build the micro benchmarks" OFF)
option(UNISONO_FUZZ "Build the fuzzers as libFuzzer programs (needs clang)" OFF)
set(UNISONO_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

add_library(unisono_flags INTERFACE)
target_compile_options(unisono_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  -Wswitch-enum -ffp-contract=off -fvisibility=hidden)
target_include_directories(unisono_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(unisono_flags INTERFACE UNISONO_VERSION="${PROJECT_VERSION}")
if(UNISONO_SANITIZE)
  target_compile_options(unisono_flags INTERFACE
    -fsanitize=${UNISONO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(unisono_flags INTERFACE -fsanitize=${UNISONO_SANITIZE})
endif()

if(UNISONO_FUZZ)
  target_compile_options(unisono_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(unisono_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What most sources include, compiled once where UNISONO_PRECOMPILE is on: it saves a third of a
# sanitizer's build. Other builds show that each source includes what it needs.
option(UNISONO_PRECOMPILE "Precompile the headers that most sources include" OFF)

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

# unisono_folder(NAME [TOGETHER] [DEPENDS folder ...] [LINK library ...] [WITHOUT file ...])
# One object library for a folder of src/; DEPENDS names lower folders only. WITHOUT leaves sources
# out that another target compiles. TOGETHER: where headers are precompiled, all sources are compiled
# as one, in a third of the time; their anonymous namespaces must not clash.
function(unisono_folder name)
  cmake_parse_arguments(ARG "TOGETHER" "" "DEPENDS;LINK;WITHOUT" ${ARGN})
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
  unisono_precompile(unisono_${name} library)
  if(ARG_TOGETHER AND UNISONO_PRECOMPILE)
    set_target_properties(unisono_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
  set_property(GLOBAL APPEND PROPERTY UNISONO_FOLDERS unisono_${name})
endfunction()

# unisono_test(NAME SOURCES file ... [LABELS label ...] [LINK library ...])
# One test program with GoogleTest's main, on the library's inner parts.
function(unisono_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LABELS;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE unisono_inner unisono_flags GTest::gtest GTest::gtest_main
                        ${ARG_LINK})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test)
  unisono_precompile(${name} test <gtest/gtest.h> <thread>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
endfunction()
