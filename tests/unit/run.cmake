# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.run LINK convoy_run nlohmann_json::nlohmann_json GTest::gmock
                SOURCES run/attempt_test.cpp run/excluded_hosts_test.cpp run/heartbeats_test.cpp run/liveness_monitor_test.cpp run/rank_liveness_test.cpp run/run_state_test.cpp run/run_status_test.cpp run/state_file_test.cpp
                        run/watchdog_test.cpp)
