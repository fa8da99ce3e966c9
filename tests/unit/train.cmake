# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.train.time_estimate SOURCES train/time_estimate_test.cpp LINK convoy_train)
convoy_add_test(unit.train.arithmetic_verdict SOURCES train/arithmetic_verdict_test.cpp LINK convoy_train)
convoy_add_test(unit.train.policy_warnings SOURCES train/policy_warnings_test.cpp LINK convoy_train)
convoy_add_test(unit.train.spike_history SOURCES train/spike_history_test.cpp LINK convoy_train)
convoy_add_test(unit.train.timeline SOURCES train/timeline_test.cpp LINK convoy_train)
convoy_add_test(unit.train.loop SOURCES train/loop_test.cpp LINK convoy_train)
convoy_add_test(unit.train.class_weights SOURCES train/class_weights_test.cpp LINK convoy_train)
convoy_add_test(unit.train.range_test SOURCES train/range_test_test.cpp LINK convoy_train)
