# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(faults.images_zoo images/zoo_test.py LABEL faults)
convoy_add_script_test(faults.images_truncated images/truncated_test.py LABEL faults)
convoy_add_script_test(faults.images_restart images/restart_test.py ARGS 3 LABEL faults TIMEOUT 300)
