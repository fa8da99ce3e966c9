# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.preparation.transport SOURCES preparation/transport_test.cpp LINK convoy_preparation)
convoy_add_test(unit.preparation.labels SOURCES preparation/labels_test.cpp LINK convoy_preparation)
convoy_add_test(unit.preparation.reading SOURCES preparation/reading_test.cpp LINK convoy_preparation)
