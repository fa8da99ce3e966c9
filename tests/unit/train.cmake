# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.train.forecast SOURCES train/forecast_test.cpp LINK convoy_train)
convoy_add_test(unit.train.foretell SOURCES train/foretell_test.cpp LINK convoy_train)
convoy_add_test(unit.train.timeline SOURCES train/timeline_test.cpp LINK convoy_train)
