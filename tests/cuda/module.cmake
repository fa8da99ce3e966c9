# SPDX-License-Identifier: Apache-2.0
# What a start finds on machines of all kinds: no driver, no GPU, an old driver, no module, the wrong one.
function(convoy_add_fake_library target folder name source)
  add_library(${target} SHARED module/${source})
  target_link_libraries(${target} PRIVATE convoy_flags)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} BUILD_WITH_INSTALL_RPATH ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/module/${folder})
endfunction()
convoy_add_fake_library(convoy_fake_driver driver cuda fake_driver.cpp)
set_target_properties(convoy_fake_driver PROPERTIES SOVERSION 1)
convoy_add_fake_library(convoy_other_module other convoy_cuda other_module.cpp)
convoy_add_fake_library(convoy_absent_library absent convoy_absent absent_library.cpp)
convoy_add_fake_library(convoy_needy_module needy convoy_cuda needy_module.cpp)
target_link_libraries(convoy_needy_module PRIVATE convoy_absent_library)

convoy_add_script_test(cuda.module module/module_test.py LABEL cuda TIMEOUT 60
  ARGS ${CMAKE_CURRENT_BINARY_DIR}/module ${CONVOY_CUDA_STUBS})
