# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` adds to the programs: experiments, job scripts, documents, and what the programs tell of themselves
# (manual pages, completions). `cpack` makes an archive of the same tree.

# Libraries outside the system's folders, as of Spack or modules, are found where they were found at link time.
set_target_properties(convoy convoy-preprocess PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)

set(share ${CMAKE_INSTALL_DATADIR}/convoy)
install(DIRECTORY configs DESTINATION ${share})
install(DIRECTORY slurm pbs DESTINATION ${share} USE_SOURCE_PERMISSIONS)
install(PROGRAMS scripts/pbs-agent.sh DESTINATION ${share}/scripts)
install(FILES scripts/batch.sh scripts/site.sh DESTINATION ${share}/scripts)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The programs know their options, so they write these files, at installation. A build for another kind of machine has none.
if(NOT CMAKE_CROSSCOMPILING)
  string(REPLACE "_" "-" pages "${CONVOY_COMMANDS}") # a source predict_scale.cpp has the command predict-scale
  install(CODE "
    set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    function(convoy_write program file)
      message(STATUS \"Installing: \${root}/\${file}\")
      cmake_path(GET file PARENT_PATH folder)
      file(MAKE_DIRECTORY \${root}/\${folder})
      execute_process(COMMAND \${program} \${ARGN} OUTPUT_FILE \${root}/\${file} COMMAND_ERROR_IS_FATAL ANY)
    endfunction()
    foreach(program \"$<TARGET_FILE:convoy>\" \"$<TARGET_FILE:convoy-preprocess>\")
      cmake_path(GET program FILENAME name)
      convoy_write(\${program} ${CMAKE_INSTALL_MANDIR}/man1/\${name}.1 manual)
      convoy_write(\${program} ${CMAKE_INSTALL_DATADIR}/bash-completion/completions/\${name} completion bash)
      convoy_write(\${program} ${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_\${name} completion zsh)
    endforeach()
    foreach(command ${pages})
      convoy_write(\"$<TARGET_FILE:convoy>\" ${CMAKE_INSTALL_MANDIR}/man1/convoy-\${command}.1 manual \${command})
    endforeach()")
endif()

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VENDOR Convoy)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains image-classification networks on the ranks of an MPI job")
set(CPACK_PACKAGE_FILE_NAME convoy-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
include(CPack)
