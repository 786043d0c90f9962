# `cpack` makes a Debian package of the files of `cmake --install`; `./dev package` calls it, in a tree
# that is configured for /usr. The completion and the manual page are printed by the built tool.
if(UNISONO_SANITIZE)  # nobody installs that, and the tool is not built there
  return()
endif()
set(unisono_generated ${PROJECT_BINARY_DIR}/package)
add_custom_command(OUTPUT ${unisono_generated}/unisono.bash ${unisono_generated}/unisono.1
  COMMAND unisono_tool generate bash-completion > ${unisono_generated}/unisono.bash
  COMMAND unisono_tool generate man-page > ${unisono_generated}/unisono.1
  DEPENDS unisono_tool VERBATIM)
add_custom_target(unisono_pages ALL
  DEPENDS ${unisono_generated}/unisono.bash ${unisono_generated}/unisono.1)
add_dependencies(unisono_installed unisono_pages)
install(FILES ${unisono_generated}/unisono.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME unisono)
install(FILES ${unisono_generated}/unisono.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
# Debian's name of the licence.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME unisono)
set(UNISONO_MAINTAINER "The Unisono authors <unisono@localhost>" CACHE STRING
    "Who answers for the Debian package: a name and a mail address")
set(CPACK_PACKAGE_CONTACT ${UNISONO_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "collective communication that does not wait for host CPUs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Barriers, broadcasts, reductions and other collectives in shared memory and\nbetween hosts. This package has the library, its headers, the command unisono\nand unisonod, the daemon of the NIC path.")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
# The programs that need libraries say which; libfabric is loaded at run time where it is there.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfabric1, libipsec-mb1, bash-completion")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/conffiles ${PROJECT_SOURCE_DIR}/packaging/debian/triggers
    ${PROJECT_SOURCE_DIR}/packaging/debian/postinst ${PROJECT_SOURCE_DIR}/packaging/debian/prerm
    ${PROJECT_SOURCE_DIR}/packaging/debian/postrm)
configure_file(${PROJECT_SOURCE_DIR}/packaging/debian/changelog.in
               ${PROJECT_BINARY_DIR}/package/changelog @ONLY)
set(CPACK_UNISONO_CHANGELOG ${PROJECT_BINARY_DIR}/package/changelog)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/debian/compress.cmake)
include(CPack)
