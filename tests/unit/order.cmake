# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.data.order SOURCES data/order_test.cpp data/order_resample_test.cpp LINK convoy_data)
convoy_add_test(unit.data.augment SOURCES data/augment_test.cpp LINK convoy_data)
