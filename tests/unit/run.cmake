# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.run LINK convoy_run nlohmann_json::nlohmann_json GTest::gmock
                SOURCES run/heartbeats_test.cpp run/rank_liveness_test.cpp run/run_state_test.cpp run/run_status_test.cpp run/state_file_test.cpp)
convoy_add_test(unit.run.watchdog LINK convoy_run GTest::gmock SOURCES run/watchdog_test.cpp)
