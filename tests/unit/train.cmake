# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.train.run_state SOURCES train/run_state_test.cpp LINK convoy_train)
