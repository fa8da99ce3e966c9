# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.comm.deadline SOURCES comm/deadline_test.cpp LINK convoy_comm GTest::gmock)
