# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.checkpoint.file SOURCES checkpoint/file_test.cpp checkpoint/compare_test.cpp LINK convoy_checkpoint)
convoy_add_test(unit.checkpoint.folder SOURCES checkpoint/folder_test.cpp checkpoint/trained_data_test.cpp LINK convoy_checkpoint)
convoy_add_test(unit.checkpoint.fence SOURCES checkpoint/fence_test.cpp LINK convoy_checkpoint)
convoy_add_test(unit.checkpoint.write_faults LINK convoy_checkpoint convoy_failing_calls SOURCES checkpoint/write_faults_test.cpp)
