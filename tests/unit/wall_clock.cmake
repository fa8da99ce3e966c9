# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.core.wall_clock SOURCES core/wall_clock_test.cpp LINK convoy_core)
add_executable(job_start_probe core/job_start_probe.cpp)
target_link_libraries(job_start_probe PRIVATE convoy_core)
target_compile_definitions(unit.core.wall_clock PRIVATE JOB_START_PROBE="$<TARGET_FILE:job_start_probe>")
add_dependencies(unit.core.wall_clock job_start_probe)
convoy_add_test(unit.core SOURCES core/progress_test.cpp core/json_test.cpp core/text_test.cpp core/wire_test.cpp LINK convoy_core)
