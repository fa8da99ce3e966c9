# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.data.order SOURCES data/order_test.cpp data/order_balanced_test.cpp data/order_resample_test.cpp LINK convoy_data)
convoy_add_test(unit.data.augment SOURCES data/augment_test.cpp data/augment_draws_test.cpp LINK convoy_data)
convoy_add_test(unit.data.augment_golden SOURCES data/augment_golden_test.cpp LINK convoy_data nlohmann_json::nlohmann_json)
target_compile_definitions(unit.data.augment_golden PRIVATE CONVOY_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")
