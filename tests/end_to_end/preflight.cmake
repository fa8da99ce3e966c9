# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(end_to_end.preflight preflight_test.py)
