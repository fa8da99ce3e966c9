# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(faults.straggler straggler_test.py LABEL faults)
add_library(stuck_reads MODULE stuck/stuck_reads.cpp)
target_link_libraries(stuck_reads PRIVATE convoy_flags ${CMAKE_DL_LIBS})
convoy_add_script_test(faults.stalls stall_test.py LABEL faults TIMEOUT 600)
set_property(TEST faults.stalls APPEND PROPERTY ENVIRONMENT CONVOY_STUCK_READS=$<TARGET_FILE:stuck_reads>)
