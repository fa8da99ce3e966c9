# SPDX-License-Identifier: Apache-2.0
add_executable(convoy_write_events tensorboard/write_events.cpp)
target_link_libraries(convoy_write_events PRIVATE convoy_metrics)
convoy_add_script_test(end_to_end.tensorboard tensorboard/tensorboard_test.py ARGS $<TARGET_FILE:convoy_write_events>)
