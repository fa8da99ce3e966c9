# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.scaling SOURCES scaling/fit_test.cpp scaling/machine_test.cpp scaling/prediction_test.cpp LINK convoy_scaling)
