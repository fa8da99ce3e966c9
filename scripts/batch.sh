# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the job scripts of slurm/ and pbs/ share. A script sources it with its own name, `. scripts/batch.sh pbs/train.pbs`, and
# then calls launch, the last thing it does. Here stand the environment, the launcher, signals, the end of the allocation, and
# what the end of the program asks for; what a site adapts is in site.sh.
#
# For the scripts: $convoy, $preprocess, $gpu_device, device, end_time, launch. Before launch a script that trains sets run_directory, one that
# prepares data sets partitions to their folder, and one whose program keeps nothing of its work where it is stopped sets keeps_nothing.
set -uo pipefail

script=${1:?usage: . scripts/batch.sh SCRIPT}
scheduler=${script%%/*} # slurm or pbs
started=$(($(date +%s) - SECONDS)) # this shell, and so the job
run_directory='' keeps_nothing='' partitions='' child='' stop_asked='' told_to_end='' launch_words=() attempts=0
attributes='' job_end='' submit=''

say() { echo "[job ${SLURM_JOB_ID:-${PBS_JOBID:-}}] $*" >&2; }

case $scheduler in
  slurm) [ -n "${SLURM_JOB_ID:-}" ] || submit='sbatch' ;;
  *) [ -n "${PBS_JOBID:-}" ] && [ -r "${PBS_NODEFILE:-}" ] || submit='qsub' ;;
esac
[ -z "$submit" ] || { echo "$script is the script of a job: start it with '$submit $script' (see docs/cluster.md)" >&2; exit 2; }

# A signal that comes before the launch is kept. Slurm's --signal=B:USR1 reaches this shell alone; mpirun and srun hand USR1
# on to all ranks.
trap 'stop_asked=1; [ -z "$child" ] || kill -USR1 "$child" 2>/dev/null' USR1
trap on_term TERM

# The scheduler sends TERM to all processes, or somebody to this shell alone: so it is handed on, at once, since ranks take
# signals within two seconds for one. mpirun would kill the ranks on TERM; USR1 means the same to them.
on_term() {
  stop_asked=1 told_to_end=$(date +%s)
  [ -n "$child" ] || return 0
  case ${launch_words[0]} in
    *srun) kill -TERM "$child" 2>/dev/null ;;
    *) kill -USR1 "$child" 2>/dev/null ;;
  esac
}

load_site() {
  # sbatch --export=NONE, the default of some sites, is about this script; what srun starts needs what is set here.
  export SLURM_EXPORT_ENV=ALL
  # shellcheck source=scripts/site.sh
  . "${CONVOY_SITE:-scripts/site.sh}" || exit 2
  [ -n "$modules" ] || return 0
  local file
  set +u # the module system's own code
  for file in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/lmod/lmod/init/bash /usr/share/modules/init/bash; do
    # shellcheck source=/dev/null
    if ! command -v module >/dev/null && [ -r "$file" ]; then . "$file"; fi
  done
  # shellcheck disable=SC2086 # a list of words
  module load $modules || { say "cannot load the modules '$modules' of ${CONVOY_SITE:-scripts/site.sh}"; exit 2; }
  set -u
}

# Seconds since 1970 at which the scheduler ends this job; NONE where there is no limit or nobody knows it.
end_time() {
  local end=$job_end
  if [ "$scheduler" = slurm ]; then
    for _ in 1 2 3; do
      if end=$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %e 2>/dev/null | head -n 1); then break; fi
      sleep 5
    done
    [ -n "$end" ] || say "WARNING: Slurm does not tell the end of this job, so the program stops ahead of it at a signal only"
    end=$(date -d "${end:-NONE}" +%s 2>/dev/null)
  fi
  echo "${end:-NONE}"
}

# attributes: lines of `qstat -f` as NAME = VALUE; it folds long ones. A server that is busy gets half a minute.
read_pbs_attributes() {
  local answer try
  for try in 1 2 3 4 5 6 7; do
    answer=$(qstat -f "$PBS_JOBID" 2>&1) && break
    if [ "$try" = 7 ]; then
      say "WARNING: PBS does not tell the wall time of this job ($answer), so the program cannot stop ahead of its end. Give --time-limit HH:MM:SS (in EXTRA)"
      return
    fi
    sleep 5
  done
  attributes=$(awk '
    /^\t/ { sub(/^\t/, ""); line = line $0; next }
    { if (line != "") print line; sub(/^ +/, ""); line = $0 }
    END { print line }' <<<"$answer")
}

attribute() { sed -n "s/^$1 = //p" <<<"$attributes"; } # NAME

# job_end: start (OpenPBS says stime, Torque start_time) plus wall time. The server may not have heard of the start yet.
read_pbs_end() {
  local wall start seconds=0 part
  wall=$(attribute Resource_List.walltime) start=$(attribute '\(stime\|start_time\)')
  [ -n "$wall" ] || return 0
  for part in ${wall//:/ }; do seconds=$((seconds * 60 + 10#$part)); done
  if [ -n "$start" ]; then start=$(date -d "$start" +%s); fi
  job_end=$((${start:-$started} + seconds))
}

# A job that is too long for its time submits itself from its host, which OpenPBS allows to the submission host alone by default.
look_for_flatuid() {
  local server host=${PBS_O_HOST:-}
  server=$(qstat -Bf 2>/dev/null) || return 0
  case $server in *flatuid\ =\ True* | *allow_node_submit\ =\ True*) return ;; esac
  [ "${host%%.*}" = "${HOSTNAME%%.*}" ] ||
    say "this PBS may refuse that jobs submit themselves (it has no flatuid, see docs/cluster.md): then you will have to submit $script again at the end of its time"
}

# The host's part of a full name, as schedulers call it; an address stays whole.
strip_domain='function strip_domain(host) { if (host !~ /^[0-9.]+$/) sub(/\..*/, "", host); return host }'

# Hosts that the run must avoid (docs/cluster.md), one per line. People edit the file: it may have comments and blank lines.
# A name counts without its domain, unless Slurm's own names have one: then all names that Slurm knows stand for it.
excluded_hosts() {
  [ -n "$run_directory" ] && [ -r "$run_directory/excluded-hosts" ] || return 0
  local known=''
  [ "$scheduler" != slurm ] || known=$(sinfo --all --noheader --Node --format %N 2>/dev/null | sort -u | tr '\n' ' ')
  awk -v known="$known" "$strip_domain"'
    BEGIN {
      count = split(known, name, " ")
      for (i = 1; i <= count; i++) {
        is_known[name[i]] = 1; short = strip_domain(name[i])
        if (short in nodes) nodes[short] = nodes[short] "\n" name[i]; else nodes[short] = name[i]
      }
    }
    { sub(/\r$/, "") }
    NF && $1 !~ /^#/ { short = strip_domain($1); print $1 in is_known ? $1 : short in nodes ? nodes[short] : short }
  ' "$run_directory/excluded-hosts" | sort -u
}

# The lines of $PBS_NODEFILE but those of excluded hosts. PBS can't be asked for other hosts than those (select knows what a host
# must have, not what it must not), so the job leaves its part of them idle: its replicas don't depend on the number of ranks.
node_lines() {
  awk -v excluded="$(excluded_hosts | tr '\n' ' ')" "$strip_domain"'
    BEGIN { count = split(excluded, name, " "); for (i = 1; i <= count; i++) out[name[i]] }
    !(strip_domain($1) in out)' "$PBS_NODEFILE"
}

# launch_words: what stands before the program.
choose_launcher() {
  read -ra launch_words <<<"$launcher"
  [ "$scheduler" = slurm ] || launch_words=(mpirun)
  case ${launch_words[0]} in
    *srun) # it does not take over what sbatch was told about cores
      launch_words+=(--kill-on-bad-exit=1 ${SLURM_CPUS_PER_TASK:+"--cpus-per-task=$SLURM_CPUS_PER_TASK"})
      skip_steps "${launch_words[0]}" ;;
    *) launch_words+=(--bind-to none) ;;
  esac
  command -v "${launch_words[0]}" >/dev/null ||
    { say "'${launch_words[0]}' is not in PATH: name the modules of your MPI, or another launcher, in ${CONVOY_SITE:-scripts/site.sh}"; exit 2; }
  [ "$scheduler" = pbs ] || return 0
  local variable nodes
  nodes=$(node_lines)
  [ -n "$nodes" ] || { say "all hosts of this job are in $run_directory/excluded-hosts: remove those that are repaired"; exit 7; }
  unset OMP_NUM_THREADS # PBS means the whole chunk; the ranks divide their cores themselves
  launch_words+=(-np "$(wc -l <<<"$nodes")")
  for variable in $(compgen -e); do
    case $variable in PATH | LD_LIBRARY_PATH | HDF5_* | NCCL_* | UCX_* | CONVOY_*) launch_words+=(-x "$variable") ;; esac
  done
  # An Open MPI that is built for PBS takes all hosts of the job by itself.
  case $(ompi_info 2>/dev/null) in *'plm: tm'*) [ "$nodes" != "$(<"$PBS_NODEFILE")" ] || return ;; esac
  # Not -hostfile: a host that stands in it once has a slot for each of its cores.
  launch_words+=(-host "$(awk '!count[$1]++ { order[++hosts] = $1 }
    END { for (i = 1; i <= hosts; i++) printf "%s%s:%d", i == 1 ? "" : ",", order[i], count[order[i]] }' <<<"$nodes")")
  # mpirun splits the agent at blanks, which $PWD may have, and its daemons look for the first word alone; it starts all of them itself.
  if command -v pbs_tmrsh >/dev/null; then launch_words+=(--mca plm_rsh_agent "/bin/sh scripts/pbs-agent.sh" --mca plm_rsh_no_tree_spawn 1); fi
}

# Partitions, and intermediate files from which the next job continues, that this job has made.
count_made() { find "$partitions/" -maxdepth 2 \( -name '*-of-*.h5' -o -name '*.run' \) -newermt "@$started" 2>/dev/null | wc -l; }

# A host that crashed keeps a socket of PMIx that is named after job and step, and srun then fails there for the same step:
# each restart of a job takes another number.
skip_steps() { # SRUN
  local step
  for ((step = 0; step < ${SLURM_RESTART_COUNT:-0} % 8; step++)); do "$1" --mpi=none --nodes=1 --ntasks=1 true || return; done
}

# The highest number of the files attempts/NNNN$1 of the run directory; 0: there is none.
highest_attempt() { # .json | .end.json
  local file number highest=0
  for file in "$run_directory"/attempts/[0-9]*"$1"; do
    number=${file##*/} number=${number%"$1"}
    case $number in '' | *[!0-9]*) continue ;; esac
    [ $((10#$number)) -le "$highest" ] || highest=$((10#$number))
  done
  echo "$highest"
}

# mpirun waits without end for a host that was cut off, also when the program has ended and said so in its run directory.
# That is looked for every 5 s, which with the 3 s of a launcher that ends by itself stays within the 10 s, after the watchdog's
# time, in which `convoy status` is to name who is missing.
end_hanging_launcher() { # PROCESS
  while [ "$(highest_attempt .end.json)" -le "$attempts" ]; do
    sleep 5
    kill -0 "$1" 2>/dev/null || return
  done
  sleep 3
  kill -TERM "$1" 2>/dev/null && sleep 1 && kill -KILL "$1" 2>/dev/null
}

# launch PROGRAM ARGUMENT ...: on all ranks of the job; then ends the script as the program's end asks for.
launch() {
  local code=75 watcher=''
  choose_launcher
  [ -z "$run_directory" ] || attempts=$(highest_attempt .json)
  say "$(date '+%F %T') ${SLURM_JOB_NODELIST:-$(sort -u "${PBS_NODEFILE:-/dev/null}" | tr '\n' ' ')}: ${launch_words[*]} $*"
  if [ -n "$stop_asked" ]; then
    say "told to stop before the program was started"
  else
    # The program then knows that SIGTERM does not reach mpirun, which would leave it too little time.
    CONVOY_JOB_SCRIPT=$script "${launch_words[@]}" "$@" &
    child=$!
    if [ -n "$run_directory" ]; then
      end_hanging_launcher "$child" &
      watcher=$!
    fi
    while :; do # a signal ends the wait, but not what it waits for
      code=0
      wait "$child" || code=$?
      kill -0 "$child" 2>/dev/null || break
    done
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
  fi
  after_launch "$code"
}

# The program decides what follows, from what it left in the run directory and from what this script knows of the job.
after_launch() { # CODE
  local words=(--after "$1" --resubmissions "$resubmissions") answer code=0
  trap '' USR1
  [ -z "$run_directory" ] || words+=("$run_directory" --attempts-before "$attempts")
  [ -z "$keeps_nothing" ] || words+=(--keeps-nothing)
  [ -z "$partitions" ] || words+=(--partitions "$partitions" --partitions-made "$(count_made)")
  [ -z "$told_to_end" ] || words+=(--told-to-end "$told_to_end")
  if [ -n "$keeps_nothing$told_to_end" ]; then
    answer=$(end_time)
    [ "$answer" = NONE ] || words+=(--job-end "$answer")
  fi
  answer=$("$convoy" status "${words[@]}") || code=$?
  case $code in 126 | 127) code=$1 ;; esac # there is no such program to ask
  [ "$answer" = again ] || exit "$code"
  local restarts=${CONVOY_RESUBMITTED:-0}
  [ "$scheduler" = pbs ] || restarts=${SLURM_RESTART_COUNT:-0}
  "resubmit_to_$scheduler" $((restarts + 1)) || say "the scheduler refused: submit $script by hand to go on"
  exit 75
}

resubmit_to_slurm() {
  local job=$SLURM_JOB_ID
  [ -z "${SLURM_ARRAY_TASK_ID:-}" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
  trap 'exit 75' TERM # with which Slurm ends this run of the job
  local hosts=''
  hosts=$(excluded_hosts | paste -sd , -)
  # Slurm takes such a list only for a waiting job, so the job is held until it has the list. Slurm's TERM comes meanwhile, and KILL KillWait later.
  if [ -n "$hosts" ]; then
    trap '' TERM
    scontrol requeuehold "$job" || return
    exclude_in_slurm "$job" "$hosts"
    exit 75
  fi
  scontrol requeue "$job" || return
  sleep 60 &
  wait $!
}

# Excludes hosts for a held job, and releases it. If Slurm refuses the list, for instance since it does not know one of the names, the job stays
# held: it would start on a host that computes wrong.
exclude_in_slurm() { # JOB HOSTS
  local known
  known=$(scontrol show job "$1" 2>/dev/null | sed -n 's/.*ExcNodeList=\([^ ]*\).*/\1/p' | head -n 1)
  case $known in '' | '(null)') known='' ;; *) known=$known, ;; esac
  if scontrol update JobId="$1" ExcNodeList="$known$2" || { sleep 0.5 && scontrol update JobId="$1" ExcNodeList="$known$2"; }; then
    scontrol release "$1"
  else
    say "Slurm refused to exclude $2 (from $run_directory/excluded-hosts), so this job stays held. To go on without them: 'scontrol update JobId=$1 ExcNodeList=HOSTS', then 'scontrol release $1'; without the first it would start on any host, also on those"
  fi
}

# A new job after this one, from the same folder, with what qsub was told on its command line.
resubmit_to_pbs() { # NUMBER
  local line name value queue='' options=() chunks=() nodes=() memory=() names=() file=$PWD/$script asked
  asked=:$(sed -nE 's/^Resource_List\.(select|nodes) = //p' <<<"$attributes" | tr '\n' ':')
  [ -n "$attributes" ] || say "PBS does not tell what this job asked for: the next one asks for what the script's #PBS lines say"
  while IFS= read -r line; do
    name=${line%% = *} value=${line#* = }
    case $name in
      Resource_List.select | Resource_List.place) chunks+=(-l "${name#*.}=$value") ;;
      Resource_List.nodes) nodes=(-l "nodes=$value") ;;
      Resource_List.mem) memory=(-l "mem=$value") ;; # in Torque's form; else a sum of the chunks, as these are
      Resource_List.ncpus | Resource_List.mpiprocs | Resource_List.ngpus | Resource_List.*node*) ;;
      Resource_List.*) # PBS shows what the chunks ask for as its sum, too
        case $asked in *[:+]"${name#*.}"=*) ;; *) options+=(-l "${name#*.}=$value") ;; esac ;;
      Job_Name) options+=(-N "$value") ;;
      Account_Name) options+=(-A "$value") ;;
      project) [ "$value" = _pbs_project_default ] || options+=(-P "$value") ;;
      group_list) options+=(-W "group_list=$value") ;;
      Join_Path) options+=(-j "$value") ;;
      Output_Path) keep_log -o "$value" ;;
      Error_Path) keep_log -e "$value" ;;
      Priority) [ "$value" = 0 ] || options+=(-p "$value") ;;
      Mail_Points) [ "$value" = a ] || options+=(-m "$value") ;;
      Mail_Users) options+=(-M "$value") ;;
      Rerunable) [ "$value" = True ] || options+=(-r n) ;;
      queue) queue=$value ;;
    esac
  done <<<"$attributes"
  # The queue that was asked for may hand its jobs on to one that takes none from users.
  queue=${PBS_O_QUEUE:-$queue}
  [ -z "$queue" ] || options+=(-q "$queue")
  # Torque's form. OpenPBS, asked in it, says what chunks it made of it as well, but takes only one of the two.
  if [ ${#nodes[@]} -gt 0 ]; then options+=("${nodes[@]}" "${memory[@]}"); else options+=("${chunks[@]}"); fi
  # One element of an array (OpenPBS refuses a range of one), and no job can wait for the end of one.
  if [ -n "${PBS_ARRAY_INDEX:-}" ]; then
    options+=(-J "$PBS_ARRAY_INDEX-$((PBS_ARRAY_INDEX + 1)):2")
  elif [ -n "${PBS_ARRAYID:-}" ]; then # Torque's
    options+=(-t "$PBS_ARRAYID")
  else
    options+=(-W "depend=afterany:$PBS_JOBID")
  fi
  export CONVOY_RESUBMITTED=$1
  for line in $(compgen -e); do
    case $line in
      DATA | SOURCE | KIND | CONFIG | OUTPUT | RUN | EXTRA | CONVOY | CONVOY_* | HDF5_* | NCCL_* | UCX_* | OMPI_MCA_*) names+=("$line") ;;
    esac
  done
  # What runs is PBS' copy of the script that was submitted, which may be a user's own under any name.
  if [ -f "$0" ] && grep -qs -- 'scripts/batch\.sh' "$0"; then file=$(realpath -- "$0"); fi
  cd "${PBS_O_WORKDIR:-.}" || return
  qsub "${options[@]}" -v "$(IFS=,; echo "${names[*]}")" "$file"
}

# Adds where the log goes to the options, if the user said it: PBS shows HOST:FOLDER/JOB.oNUMBER where not, or where he named a folder.
keep_log() { # -o|-e HOST:PATH
  local number=${PBS_JOBID%%[!0-9]*} folder=${2%/*}
  case ${2##*/} in
    *".${1#-}$number"* | "$number".*) [ "${folder#*:}" = "${PBS_O_WORKDIR:-}" ] || options+=("$1" "$folder/") ;;
    *) options+=("$1" "$2") ;;
  esac
}

load_site
if [ "$scheduler" = pbs ]; then
  read_pbs_attributes
  read_pbs_end
  look_for_flatuid
fi

# For scripts that ask for no GPUs themselves: their job may have been given some on the command line of sbatch.
device=()
# shellcheck disable=SC2034 # the scripts use it
[ -z "${SLURM_GPUS_ON_NODE:-}" ] || device=(--device "$gpu_device")
