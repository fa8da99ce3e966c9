# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.data_prepare.dataset SOURCES data_prepare/dataset_test.cpp LINK convoy_preparation)
convoy_add_test(unit.data_prepare.partition SOURCES data_prepare/partition_test.cpp LINK convoy_preparation)
convoy_add_test(unit.data_prepare.preparation SOURCES data_prepare/preparation_test.cpp LINK convoy_preparation)
convoy_add_test(unit.data_prepare.synthetic SOURCES data_prepare/synthetic_test.cpp LINK convoy_data)
convoy_add_test(unit.data_prepare.large SOURCES data_prepare/large_test.cpp LINK convoy_preparation)
