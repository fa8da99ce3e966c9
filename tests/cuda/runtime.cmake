# SPDX-License-Identifier: Apache-2.0
# The device queue, the backend and the updater against a CUDA runtime that is lazy: all orders, every wait removed.
convoy_add_cuda_host_test(cuda.runtime
  SOURCES runtime/queue_test.cpp runtime/backend_test.cpp runtime/updater_test.cpp runtime/step_test.cpp
          ../support/allocations.cpp ../support/golden.cpp
  LINK convoy_reference convoy_backend_cpu nlohmann_json::nlohmann_json TIMEOUT 600)
target_compile_definitions(cuda.runtime PRIVATE CONVOY_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
