# SPDX-License-Identifier: Apache-2.0
convoy_add_test(faults.data SOURCES data/dataset_faults_test.cpp LINK convoy_preparation LABEL faults)
convoy_add_test(faults.data_flips SOURCES data/flips_test.cpp LINK convoy_preparation LABEL faults)
