# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.metrics.files SOURCES metrics/journal_test.cpp metrics/metrics_test.cpp
  LINK convoy_metrics nlohmann_json::nlohmann_json)
convoy_add_test(unit.metrics.text SOURCES metrics/compare_test.cpp metrics/console_test.cpp metrics/rank_times_test.cpp metrics/summarise_test.cpp LINK convoy_metrics)
convoy_add_test(unit.metrics.event_file SOURCES metrics/event_file_test.cpp
  LINK convoy_metrics convoy_io convoy_tensorboard_messages)
