# SPDX-License-Identifier: Apache-2.0
convoy_add_test(mpi.preparation LABEL mpi RANKS 1 2 SOURCES preparation/scan_test.cpp LINK convoy_preparation)
