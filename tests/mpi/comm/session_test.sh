#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# session_test.sh PROBE: what a session chooses, and that a failing rank ends the job.
set -u
probe=$1
unset OMPI_MCA_pml OMPI_MCA_btl OMPI_MCA_mtl
HOME=$(mktemp -d)  # no mca-params.conf of the user
export HOME
trap 'rm -rf "$HOME"' EXIT
failures=0

launch() { timeout 20 mpirun --oversubscribe --bind-to none "$@"; }
expect() { # what, expected, found
  if [[ $3 != "$2" ]]; then
    echo "$1: expected '$2', found '$3'"
    failures=$((failures + 1))
  fi
}

expect "one host" "pml=ob1 btl=self,vader" "$(launch -np 2 "$probe" transport)"
expect "no launcher" "pml=ob1 btl=self,vader" "$(env -u PMIX_RANK "$probe" transport)"
# Programs without a launcher that start and end side by side would remove each other's session folder. Here none can be made.
touch "$HOME/file"
expect "no session folder" "pml=ob1 btl=self,vader" "$(env -u PMIX_RANK OMPI_MCA_orte_tmpdir_base="$HOME/file/none" "$probe" transport)"
expect "no session folder, transport of the user" "pml= btl=self" \
  "$(env -u PMIX_RANK OMPI_MCA_orte_tmpdir_base="$HOME/file/none" OMPI_MCA_btl=self "$probe" transport)"
expect "option of mpirun" "pml= btl=self,tcp" "$(launch --mca btl self,tcp -np 2 "$probe" transport)"
expect "variable" "pml= btl=self,tcp" "$(OMPI_MCA_btl=self,tcp launch -np 2 "$probe" transport)"
mkdir "$HOME/.openmpi"
echo "btl = self,tcp" >"$HOME/.openmpi/mca-params.conf"
expect "file of the user" "pml= btl=" "$(launch -np 2 "$probe" transport)"
rm -r "$HOME/.openmpi"

# timeout's own code is 124.
output=$(launch -np 3 "$probe" outside 2>&1)
expect "code of a failing rank" 3 $?
expect "message of a failing rank" 1 "$(grep -c '^partition 1 is damaged$' <<<"$output")"
output=$(launch -np 3 "$probe" inside 2>&1)
expect "code where unwinding passes the session" 3 $?
expect "message where unwinding passes the session" 1 "$(grep -c '^partition 1 is damaged$' <<<"$output")"

# The launcher is stopped (SIGSTOP) while the ranks finalise, and continues after all have given up waiting. Open MPI is told to
# leave out the barrier in MPI_Finalize that needs the launcher.
OMPI_MCA_async_mpi_finalize=1 launch -np 3 "$probe" frozen "$HOME/ids" >"$HOME/said" 2>&1 &
job=$!
until [[ -s $HOME/ids && $(wc -l <"$HOME/ids") == 4 ]] || ! kill -0 $job 2>/dev/null; do sleep 0.01; done
mapfile -t ids <"$HOME/ids"
for rank in "${ids[@]:0:3}"; do
  while find "/proc/$rank/fd" -lname 'socket:*' 2>/dev/null | grep -q .; do sleep 0.01; done
  # A rank exits after 5 s. On a slow machine that can be before the others give up, and mpirun then rightly reports an
  # error. The message below marks that case.
  kill -0 "$rank" 2>/dev/null || echo "rank with id $rank is gone before the launcher continues"
done
kill -CONT "${ids[3]}"
wait $job
expect "code after a launcher that was slow at the end" 0 $?
expect "what it says" "" "$(grep -v 'Forwarding signal' "$HOME/said")"

exit $((failures > 0))
