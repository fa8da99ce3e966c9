# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.watch LABEL unit LINK convoy_metrics nlohmann_json::nlohmann_json GTest::gmock SOURCES watch/heartbeats_test.cpp watch/pulse_test.cpp
                watch/roll_call_test.cpp)
convoy_add_test(unit.watchdog LABEL unit LINK convoy_core GTest::gmock SOURCES watch/watchdog_test.cpp)
