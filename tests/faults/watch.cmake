# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(faults.straggler straggler_test.py LABEL faults)
