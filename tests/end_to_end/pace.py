# SPDX-License-Identifier: Apache-2.0
"""Jobs that are disturbed in the middle must not be through before the test has come to it, on any machine."""


def crawl(step, seconds=0.5):
    """Options with which a training takes so long for each batch of rank 0 from that step on; bits stay the same."""
    return ["--inject-fault", f"slow-compute@0@{step}@{seconds}"]


class Pace:
    """A program for job scripts: Convoy, whose training crawls from `step` on. hurry() lets later starts of the job run at
    full speed."""

    def __init__(self, path, convoy, step, seconds=0.5):
        self.program, self._crawls = path, path.with_name(f"{path.name}.crawls")
        self._crawls.touch()
        path.write_text(f'#!/bin/sh\nif [ "$1" = train ] && [ -e {self._crawls} ]; then set -- "$@" {" ".join(crawl(step, seconds))}; fi\n'
                        f'exec {convoy} "$@"\n', encoding="utf-8")
        path.chmod(0o755)

    def hurry(self):
        self._crawls.unlink(missing_ok=True)
