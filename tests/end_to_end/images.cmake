# SPDX-License-Identifier: Apache-2.0
foreach(case sources splits modes ranks memory)
  convoy_add_script_test(end_to_end.images_${case} images/images_test.py ARGS ${case})
endforeach()
convoy_add_script_test(end_to_end.images_train images/train_test.py)
convoy_add_script_test(end_to_end.images_sorted images/sorted_test.py)
convoy_add_script_test(end_to_end.images_rectangular images/rectangular_test.py)
convoy_add_script_test(end_to_end.images_documents images/documents_test.py)
