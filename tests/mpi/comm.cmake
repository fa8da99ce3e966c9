# SPDX-License-Identifier: Apache-2.0
convoy_add_test(mpi.communicator LABEL mpi TIMEOUT 120 RANKS 1 2 3 5 LINK convoy_comm SOURCES comm/communicator_test.cpp)
convoy_add_test(mpi.collectives LABEL mpi TIMEOUT 120 RANKS 1 2 3 4 LINK convoy_comm
  SOURCES comm/collectives_test.cpp comm/tree_test.cpp comm/steady_state_test.cpp comm/staging_test.cpp comm/wire_test.cpp comm/shared_sum_test.cpp
          ${CMAKE_SOURCE_DIR}/tests/support/allocations.cpp)
convoy_add_test(mpi.deadline LABEL mpi TIMEOUT 120 RANKS 3 LINK convoy_comm SOURCES comm/deadline_test.cpp)
add_executable(session_probe comm/session_probe.cpp)
target_link_libraries(session_probe PRIVATE convoy_comm)
convoy_add_script_test(mpi.session comm/session_test.sh LABEL mpi TIMEOUT 180 ARGS $<TARGET_FILE:session_probe>)
