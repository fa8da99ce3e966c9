# SPDX-License-Identifier: Apache-2.0
# One source, every backend: CONVOY_TEST_DEVICE names it.
convoy_add_test(parity.operations.cpu SOURCES operations_test.cpp ../support/backend_run.cpp ../support/case_graph.cpp
  LINK convoy_reference convoy_backend LABEL parity TIMEOUT 120)
convoy_add_test(parity.program.cpu SOURCES program_test.cpp ../support/backend_run.cpp
  LINK convoy_reference convoy_backend LABEL parity)
set_property(TEST parity.operations.cpu parity.program.cpu APPEND PROPERTY ENVIRONMENT CONVOY_TEST_DEVICE=cpu)
