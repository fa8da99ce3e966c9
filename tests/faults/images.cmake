# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(faults.images_names images/names_test.py LABEL faults)
convoy_add_script_test(faults.images_zoo images/zoo_test.py LABEL faults)
convoy_add_script_test(faults.images_truncated images/truncated_test.py LABEL faults)
convoy_add_script_test(faults.images_restart images/restart_test.py ARGS 5 LABEL faults TIMEOUT 300)
convoy_add_script_test(faults.images_remote images/remote_test.py LABEL faults TIMEOUT 200)
foreach(case archives folders full_disk broken_disk)
  convoy_add_script_test(faults.images_${case} images/errors_test.py ARGS ${case} LABEL faults)
endforeach()
