# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.sync SOURCES sync/compressors_test.cpp LINK convoy_sync)
