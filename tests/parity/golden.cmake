# SPDX-License-Identifier: Apache-2.0
# Golden values: tests/golden/make_golden.py.
convoy_add_test(parity.golden SOURCES golden_test.cpp ../support/backend_run.cpp ../support/golden.cpp
  LINK convoy_reference convoy_backend nlohmann_json::nlohmann_json LABEL parity TIMEOUT 600)
target_compile_definitions(parity.golden PRIVATE CONVOY_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
# The two with 150 and 250 convolutions, and the one with 67 million weights, run beside the others.
set(deep *inception_v4:*inception_resnet_v2:*wide_resnet50_2)
set_property(TEST parity.golden PROPERTY ENVIRONMENT OMP_WAIT_POLICY=passive GTEST_FILTER=-${deep})
add_test(NAME parity.golden.deep COMMAND parity.golden --gtest_filter=${deep})
set_tests_properties(parity.golden.deep PROPERTIES LABELS parity TIMEOUT 600 ENVIRONMENT OMP_WAIT_POLICY=passive)
convoy_repeat_with_avx2(parity.golden --gtest_filter=*Networks*:-*resnet50:*resnext50*:*inception_v3:*efficientnet_v2_s:${deep})
convoy_add_test(parity.steps SOURCES steps_test.cpp ../support/backend_run.cpp ../support/golden.cpp
  LINK convoy_reference convoy_backend nlohmann_json::nlohmann_json LABEL parity TIMEOUT 300)
target_compile_definitions(parity.steps PRIVATE CONVOY_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
set_property(TEST parity.steps PROPERTY ENVIRONMENT OMP_WAIT_POLICY=passive)
convoy_repeat_with_avx2(parity.steps --gtest_filter=-*inception_v3_aux:${deep})
