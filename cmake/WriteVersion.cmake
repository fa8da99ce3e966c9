# SPDX-License-Identifier: Apache-2.0
# cmake -DCONVOY_SOURCE=... -DCONVOY_OUTPUT=... -DCONVOY_VERSION=... -DCONVOY_COMPILER=... -P WriteVersion.cmake
# Runs at every build; configure_file leaves an unchanged file alone, so nothing is rebuilt then.
set(CONVOY_GIT "no git")
find_program(git git)
# An archive may lie inside another project's repository, whose commit says nothing of it.
if(git AND EXISTS ${CONVOY_SOURCE}/.git)
  execute_process(COMMAND ${git} --no-optional-locks -C ${CONVOY_SOURCE} describe --always --dirty --abbrev=12
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
  if(result EQUAL 0)
    set(CONVOY_GIT "git ${described}")
  endif()
endif()
configure_file(${CONVOY_SOURCE}/src/core/version.cpp.in ${CONVOY_OUTPUT} @ONLY)
