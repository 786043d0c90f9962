# The files of `cmake --install` besides the tool (tools/CMakeLists.txt): the two public headers, the
# library, and the files for find_package(unisono) and pkg-config. The package may be moved as a whole.
include(CMakePackageConfigHelpers)

set(unisono_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/unisono)

install(TARGETS unisono EXPORT unisono_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT unisono_targets FILE unisonoTargets.cmake NAMESPACE unisono::
        DESTINATION ${unisono_package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/unisono DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/unisono)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# What `unisono bench --peers` runs, in the folders of the sources.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/peers ${PROJECT_SOURCE_DIR}/bench/hosts
        DESTINATION ${CMAKE_INSTALL_DATADIR}/unisono/bench
        FILES_MATCHING PATTERN "*.py" PATTERN "mpi_twin.c" PATTERN "mpi.h" PATTERN "__pycache__" EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/test/frontend/host_mpi.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/unisono/test/frontend)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/mpi_environments.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/unisono/scripts)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/unisonoConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/unisonoConfig.cmake INSTALL_DESTINATION ${unisono_package_dir})
# Before 1.0 a minor version may break the ABI.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/unisonoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/unisonoConfig.cmake
              ${PROJECT_BINARY_DIR}/package/unisonoConfigVersion.cmake
        DESTINATION ${unisono_package_dir})

file(RELATIVE_PATH UNISONO_PC_TO_PREFIX
     ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" UNISONO_PC_TO_PREFIX "${UNISONO_PC_TO_PREFIX}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/unisono.pc.in ${PROJECT_BINARY_DIR}/package/unisono.pc
               @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/unisono.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The daemon of the NIC path: its manual, a unit for each interface, and the
# options of that unit.
configure_file(${PROJECT_SOURCE_DIR}/packaging/unisonod.8.in ${PROJECT_BINARY_DIR}/package/unisonod.8
               @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/unisonod.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
configure_file(${PROJECT_SOURCE_DIR}/packaging/unisonod@.service.in
               ${PROJECT_BINARY_DIR}/package/unisonod@.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/unisonod@.service
        DESTINATION lib/systemd/system)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/unisonod.default
        DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/default RENAME unisonod)

# A build tree can be used like an installed one: bin/, lib/ and include/ side by side.
file(GLOB unisono_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/unisono/*)
set(unisono_copies)
foreach(header IN LISTS unisono_headers)
  get_filename_component(name ${header} NAME)
  set(copy ${PROJECT_BINARY_DIR}/include/unisono/${name})
  add_custom_command(OUTPUT ${copy} DEPENDS ${header}
                     COMMAND ${CMAKE_COMMAND} -E copy ${header} ${copy})
  list(APPEND unisono_copies ${copy})
endforeach()
add_custom_target(unisono_headers ALL DEPENDS ${unisono_copies})

# All that `cmake --install` copies, without tests and benchmarks: what `./dev build` makes.
add_custom_target(unisono_installed)
add_dependencies(unisono_installed unisono unisono_headers unisono_tool unisonod)
if(TARGET unisono_mpi)
  add_dependencies(unisono_installed unisono_mpi)
endif()
