# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.io.seal SOURCES io/seal_test.cpp LINK convoy_io)
convoy_add_test(unit.io.folder SOURCES io/folder_test.cpp LINK convoy_io)
convoy_add_test(unit.io.hdf5 SOURCES io/hdf5_test.cpp LINK convoy_io)
convoy_add_test(unit.io.append_file SOURCES io/append_file_test.cpp LINK convoy_io convoy_failing_calls)
