# SPDX-License-Identifier: Apache-2.0
convoy_add_test(mpi.sync LABEL mpi TIMEOUT 120 RANKS 1 2 3 4 LINK convoy_sync
  SOURCES sync/laws_test.cpp sync/gradient_sync_test.cpp sync/weight_sync_test.cpp sync/group_average_test.cpp sync/late_average_test.cpp sync/outer_optimiser_test.cpp sync/wire_test.cpp sync/compression_test.cpp sync/shares_test.cpp sync/memory_test.cpp sync/small_job.cpp
          ${CMAKE_SOURCE_DIR}/tests/support/allocations.cpp)
