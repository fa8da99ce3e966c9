# SPDX-License-Identifier: Apache-2.0
# The program itself on "GPUs": it opens a module that is the real one but for the runtime, cuDNN and NCCL.
if(NOT TARGET convoy_cuda)
  return()
endif()
add_library(convoy_host_module SHARED job/host_module.cpp ../../src/backend/cuda/module.cpp
  $<TARGET_OBJECTS:convoy_cuda_objects> $<TARGET_OBJECTS:convoy_nccl_objects> $<TARGET_OBJECTS:convoy_cuda_host_kernels>
  $<TARGET_OBJECTS:convoy_host_cuda> $<TARGET_OBJECTS:convoy_host_reference> $<TARGET_OBJECTS:convoy_host_nccl>)
convoy_cuda_host_options(convoy_host_module)
target_compile_options(convoy_host_module PRIVATE -Wno-pedantic)
target_link_libraries(convoy_host_module PRIVATE convoy_backend_lowering convoy_network convoy_comm convoy_core convoy_mpi)
target_link_options(convoy_host_module PRIVATE -Wl,--no-undefined)
set_target_properties(convoy_host_module PROPERTIES OUTPUT_NAME convoy_cuda
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/module/host)
add_dependencies(convoy_host_module convoy_fake_driver)
# NCCL's stand-in works on the streams of the CUDA runtime's, so one library holds both; this one leads to its entry.
add_library(convoy_host_nccl_module MODULE job/host_nccl_module.cpp)
target_link_libraries(convoy_host_nccl_module PRIVATE convoy_host_module convoy_flags)
target_link_options(convoy_host_nccl_module PRIVATE -Wl,--no-as-needed)
set_target_properties(convoy_host_nccl_module PROPERTIES OUTPUT_NAME convoy_nccl BUILD_RPATH "$ORIGIN"
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/module/host)
convoy_add_script_test(cuda.job job/job_test.py LABEL cuda TIMEOUT 240
  ARGS ${CMAKE_CURRENT_BINARY_DIR}/module/host ${CMAKE_CURRENT_BINARY_DIR}/module/driver)
