# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.placement LABEL unit LINK convoy_engine GTest::gmock SOURCES placement/cores_test.cpp
                placement/host_facts_test.cpp placement/launcher_test.cpp placement/memory_use_test.cpp placement/rank_table_test.cpp placement/topology_test.cpp placement/placement_test.cpp)
