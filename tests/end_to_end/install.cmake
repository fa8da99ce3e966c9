# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(end_to_end.install install_test.py)
