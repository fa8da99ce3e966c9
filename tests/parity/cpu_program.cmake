# SPDX-License-Identifier: Apache-2.0
convoy_add_test(parity.cpu_program SOURCES cpu_program_test.cpp cpu_kernels_test.cpp gemm_test.cpp grouped_test.cpp winograd_test.cpp ../support/allocations.cpp
  LINK convoy_reference convoy_backend convoy_backend_cpu convoy_network OpenMP::OpenMP_CXX LABEL parity TIMEOUT 480)
set_property(TEST parity.cpu_program PROPERTY ENVIRONMENT OMP_WAIT_POLICY=passive)
convoy_repeat_with_avx2(parity.cpu_program)
