# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.optim.schedule SOURCES optim/schedule_test.cpp LINK convoy_optim)
