# SPDX-License-Identifier: Apache-2.0
# NCCL's call sequence against a stand-in that keeps its rules: every order of work, every wait removed in turn, failures.
add_library(convoy_host_nccl OBJECT ../support/host_nccl/host_nccl.cpp)
target_include_directories(convoy_host_nccl PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(convoy_host_nccl PRIVATE convoy_flags convoy_mpi convoy_cuda_sdk)
# nccl.h names its types and functions as it likes, and MPI's macros cast as C does.
target_compile_options(convoy_host_nccl PRIVATE -Wno-pedantic)

convoy_add_test(cuda.nccl LABEL cuda TIMEOUT 60 RANKS 1 2 3
  SOURCES nccl/sums_test.cpp nccl/failures_test.cpp $<TARGET_OBJECTS:convoy_nccl_objects> $<TARGET_OBJECTS:convoy_host_nccl>
  LINK convoy_comm convoy_cuda_sdk convoy_mpi)

convoy_add_cuda_host_test(cuda.captured RANKS 2 TIMEOUT 240
  SOURCES nccl/captured_test.cpp step/ranks_job.cpp step/training.cpp $<TARGET_OBJECTS:convoy_nccl_objects> $<TARGET_OBJECTS:convoy_host_nccl>
  LINK convoy_backend_cpu convoy_sync convoy_comm convoy_mpi)
target_compile_options(cuda.captured PRIVATE -Wno-pedantic)
