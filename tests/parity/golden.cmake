# SPDX-License-Identifier: Apache-2.0
# Golden values: tests/golden/make_golden.py.
convoy_add_test(parity.golden SOURCES golden_test.cpp ../support/backend_run.cpp ../support/golden.cpp
  LINK convoy_reference convoy_backend nlohmann_json::nlohmann_json LABEL parity TIMEOUT 300)
target_compile_definitions(parity.golden PRIVATE CONVOY_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
set_property(TEST parity.golden PROPERTY ENVIRONMENT OMP_WAIT_POLICY=passive)
convoy_repeat_with_avx2(parity.golden --gtest_filter=*Networks*:-*resnet50:*inception_v3)
