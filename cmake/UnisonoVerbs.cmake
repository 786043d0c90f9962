# The transport by verbs needs the headers of libibverbs only: the library is loaded on demand. If
# they are missing, or UNISONO_VERBS is OFF, everything else is built. A user who asks for verbs
# then gets an error that says so.

option(UNISONO_VERBS "Build the transport by verbs (needs the headers of libibverbs)" ON)

# UNISONO_WITHOUT_VERBS: the sources of src/transport that are not compiled here.
if(UNISONO_VERBS)
  find_path(UNISONO_VERBS_INCLUDE infiniband/verbs.h DOC "Where the headers of libibverbs are")
endif()
if(UNISONO_VERBS AND UNISONO_VERBS_INCLUDE)
  set(UNISONO_WITHOUT_VERBS verbs/verbs_absent.cpp)
  message(STATUS "verbs: headers in ${UNISONO_VERBS_INCLUDE}")
else()
  set(UNISONO_WITHOUT_VERBS verbs/verbs.cpp verbs/device.cpp verbs/library.cpp verbs/outgoing.cpp
      verbs/incoming.cpp verbs/port.cpp verbs/multicast/multicast.cpp
      verbs/multicast/group_datagrams.cpp verbs/multicast/group_queue.cpp)
  if(UNISONO_VERBS)
    message(STATUS "verbs: not used, no headers (Debian: libibverbs-dev)")
  else()
    message(STATUS "verbs: not used, UNISONO_VERBS is OFF")
  endif()
endif()
