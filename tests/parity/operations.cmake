# SPDX-License-Identifier: Apache-2.0
# One source, every backend: CONVOY_TEST_DEVICE names it. Passive waiting: on shared cores OpenMP's spinning would take longer
# than the tests.
convoy_add_test(parity.operations.cpu SOURCES operations_test.cpp ../support/backend_run.cpp ../support/case_graph.cpp
  LINK convoy_reference convoy_backend LABEL parity TIMEOUT 300)
convoy_add_test(parity.program.cpu SOURCES program_test.cpp freeze_test.cpp ../support/backend_run.cpp
  LINK convoy_reference convoy_backend LABEL parity)
set(environment CONVOY_TEST_DEVICE=cpu OMP_WAIT_POLICY=passive)
set_property(TEST parity.operations.cpu parity.program.cpu PROPERTY ENVIRONMENT ${environment})
convoy_repeat_with_avx2(parity.operations.cpu --gtest_filter=*_fp32)
convoy_repeat_with_avx2(parity.program.cpu)

# What only a GPU does: run by gpu.fused, and on the host by cuda.fused (tests/cuda).
convoy_add_test(parity.fused SOURCES fused_test.cpp ../support/backend_run.cpp LINK convoy_reference convoy_backend LABEL parity)
