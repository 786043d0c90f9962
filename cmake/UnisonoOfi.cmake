# The transport by libfabric needs its headers only: the library is loaded on demand
# (docs/decisions/0018). If the headers are missing, or UNISONO_OFI is OFF, everything else is built.
# A user who asks for libfabric then gets an error that says so.

option(UNISONO_OFI "Build the transport by libfabric (needs its headers)" ON)

# UNISONO_WITHOUT_OFI: the sources of src/transport that are not compiled here.
if(UNISONO_OFI)
  find_path(UNISONO_OFI_INCLUDE rdma/fi_rma.h DOC "Where libfabric's headers are")
endif()
if(UNISONO_OFI AND UNISONO_OFI_INCLUDE)
  set(UNISONO_WITHOUT_OFI ofi/ofi_absent.cpp)
  message(STATUS "libfabric: headers in ${UNISONO_OFI_INCLUDE}")
else()
  set(UNISONO_WITHOUT_OFI ofi/ofi.cpp ofi/endpoint.cpp ofi/library.cpp)
  if(UNISONO_OFI)
    message(STATUS "libfabric: not used, no headers (Debian: libfabric-dev)")
  else()
    message(STATUS "libfabric: not used, UNISONO_OFI is OFF")
  endif()
endif()
