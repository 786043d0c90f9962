# The NIC program is compiled by clang for the kernel's virtual machine and embedded into the library.
# Where clang or libbpf are missing, or UNISONO_NIC is OFF, everything else is built, and loading
# a program is an error that says so.

option(UNISONO_NIC "Build the NIC program (needs clang and libbpf)" ON)

# unisono_find_bpf(WHY): sets UNISONO_BPF_CLANG and the target PkgConfig::BPF; WHY is empty or what is
# missing.
function(unisono_find_bpf why)
  if(NOT UNISONO_NIC)
    set(${why} "UNISONO_NIC is OFF" PARENT_SCOPE)
    return()
  endif()
  find_program(UNISONO_BPF_CLANG
    NAMES clang-19 clang-20 clang-21 clang-18 clang-17 clang-16 clang-15 clang
    DOC "Compiler of the NIC program: a clang with the target bpf")
  if(NOT UNISONO_BPF_CLANG)
    set(${why} "no clang (Debian: clang-19)" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${UNISONO_BPF_CLANG} -target bpf -mcpu=v3 -x c -c -o /dev/null /dev/null
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    set(${why} "${UNISONO_BPF_CLANG} does not compile for the target bpf" PARENT_SCOPE)
    return()
  endif()
  pkg_check_modules(BPF IMPORTED_TARGET GLOBAL libbpf)
  if(NOT BPF_FOUND)
    set(${why} "no libbpf (Debian: libbpf-dev)" PARENT_SCOPE)
  endif()
endfunction()

unisono_find_bpf(why)
if(why)
  set(UNISONO_HAVE_BPF FALSE)
  message(STATUS "NIC program: not built, ${why}")
else()
  set(UNISONO_HAVE_BPF TRUE)
  message(STATUS "NIC program: ${UNISONO_BPF_CLANG}, libbpf ${BPF_VERSION}")
endif()

# unisono_bpf_object(OUTPUT SOURCE): OUTPUT, a C++ file, holds the program compiled from SOURCE.
function(unisono_bpf_object output source)
  set(object ${output}.o)
  # Freestanding: clang's own stdint.h, not that of the host's C library. The last folder holds
  # asm/types.h, which the kernel's headers include.
  add_custom_command(OUTPUT ${output}
    COMMAND ${UNISONO_BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -ffreestanding -Wall -Wextra -Werror
      -I${PROJECT_SOURCE_DIR}/src -idirafter ${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
      -MD -MF ${object}.d -MT ${output} -c ${source} -o ${object}
    COMMAND ${CMAKE_COMMAND} -DOBJECT=${object} -DOUTPUT=${output}
      -P ${PROJECT_SOURCE_DIR}/cmake/EmbedObject.cmake
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/EmbedObject.cmake
    DEPFILE ${object}.d
    COMMENT "Compiling the NIC program"
    VERBATIM)
endfunction()
