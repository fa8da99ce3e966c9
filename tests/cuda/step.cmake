# SPDX-License-Identifier: Apache-2.0
# Whole steps on the host: the module's code, cuDNN's graphs answered by the double reference.
convoy_add_cuda_host_test(cuda.step LINK convoy_backend_cpu TIMEOUT 600
  SOURCES step/step_test.cpp step/order_test.cpp step/allocation_test.cpp step/recompute_test.cpp step/training.cpp ../support/allocations.cpp)
convoy_add_cuda_host_test(cuda.staged RANKS 2 SOURCES step/staged_test.cpp step/ranks_job.cpp step/training.cpp
  LINK convoy_backend_cpu convoy_sync convoy_comm TIMEOUT 600)

# The tests that all backends share.
convoy_add_cuda_host_test(cuda.operations LINK convoy_reference TIMEOUT 600
  SOURCES step/host_factory.cpp step/limits_test.cpp ../parity/operations_test.cpp ../support/backend_run.cpp ../support/case_graph.cpp)
convoy_add_cuda_host_test(cuda.program LINK convoy_reference TIMEOUT 300
  SOURCES step/host_factory.cpp ../parity/program_test.cpp ../parity/freeze_test.cpp ../support/backend_run.cpp)
convoy_add_cuda_host_test(cuda.fused LINK convoy_reference TIMEOUT 300
  SOURCES step/host_factory.cpp ../parity/fused_test.cpp ../support/backend_run.cpp)
set_property(TEST cuda.fused PROPERTY ENVIRONMENT CONVOY_TEST_DEVICE=cuda)
set_property(TEST cuda.operations PROPERTY ENVIRONMENT CONVOY_TEST_DEVICE=cuda GTEST_FILTER=-Shipped/*)
set_property(TEST cuda.program PROPERTY ENVIRONMENT CONVOY_TEST_DEVICE=cuda)
# Of each family the network that the double reference is through with in seconds.
convoy_add_cuda_host_test(cuda.steps LINK convoy_reference nlohmann_json::nlohmann_json TIMEOUT 600
  SOURCES step/host_factory.cpp ../parity/steps_test.cpp ../support/backend_run.cpp ../support/golden.cpp)
target_compile_definitions(cuda.steps PRIVATE CONVOY_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
set(families lenet mlp alexnet_owt vgg11 resnet20 resnet18 seresnet50 wrn16_4 densenet121 googlenet_aux inception_bn squeezenet1_1
  mobilenet_v1 mobilenet_v2 mobilenet_v3_small efficientnet_b0 mnasnet0_5 regnet_y_400mf airbench94)
list(TRANSFORM families PREPEND */)
list(JOIN families : families)
set_property(TEST cuda.steps PROPERTY ENVIRONMENT OMP_WAIT_POLICY=passive CONVOY_TEST_DEVICE=cuda GTEST_FILTER=${families})
