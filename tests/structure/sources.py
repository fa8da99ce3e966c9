# SPDX-License-Identifier: Apache-2.0
"""The source tree keeps its rules."""
import os
import sys

import rules

violations = list(rules.all_violations(os.environ["CONVOY_SOURCE"]))
for violation in violations:
    print(violation, file=sys.stderr)
sys.exit(1 if violations else 0)
