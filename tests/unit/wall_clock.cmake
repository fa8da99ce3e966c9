# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.core.wall_clock SOURCES core/wall_clock_test.cpp LINK convoy_core)
