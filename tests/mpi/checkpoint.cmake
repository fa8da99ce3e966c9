# SPDX-License-Identifier: Apache-2.0
convoy_add_test(mpi.checkpoint SOURCES checkpoint/checkpoint_test.cpp LINK convoy_checkpoint RANKS 1 2 3 LABEL mpi)
convoy_add_test(mpi.saver SOURCES checkpoint/saver_test.cpp LINK convoy_checkpoint convoy_failing_calls RANKS 1 2 3 LABEL mpi)

add_executable(checkpoint_save_loop checkpoint/save_loop.cpp)
target_include_directories(checkpoint_save_loop PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(checkpoint_save_loop PRIVATE convoy_checkpoint)
convoy_add_script_test(mpi.checkpoint.killed checkpoint/killed.sh ARGS $<TARGET_FILE:checkpoint_save_loop> LABEL mpi)
convoy_add_script_test(mpi.checkpoint.h5py checkpoint/h5py_reads.py ARGS $<TARGET_FILE:checkpoint_save_loop> LABEL mpi)
