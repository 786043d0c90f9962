# CPack runs this on the files of the package before it packs them. Debian wants manual pages and the
# changelog compressed, without a time stamp.
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
file(COPY ${CPACK_UNISONO_CHANGELOG} DESTINATION ${share}/doc/unisono
     FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
file(GLOB pages ${share}/man/man*/*.[1-9])
execute_process(COMMAND gzip -9n ${pages} ${share}/doc/unisono/changelog
                COMMAND_ERROR_IS_FATAL ANY)
