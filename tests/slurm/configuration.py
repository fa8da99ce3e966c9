# SPDX-License-Identifier: Apache-2.0
"""Slurm's configuration files for a cluster of hosts on one machine."""
import os
import stat

import hosts

SLURM = """\
ClusterName=convoy
SlurmctldHost=login({login})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A requeued job waits until its credential has run out: two minutes by default.
AuthInfo=socket={folder}/munge.socket,cred_expire={requeue_delay}
CredType=cred/munge
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault={mpi}
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobRequeue=1
KillWait={kill_wait}
CompleteWait=0
SlurmdTimeout={down_after}
SlurmctldTimeout=30
InactiveLimit=0
MinJobAge=3600
MessageTimeout=5
# The hosts claim more cores and memory than the machine has.
SlurmdParameters=config_overrides
GresTypes=gpu
{extra}
{hosts}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP OverSubscribe=NO
"""

HOST = (
    "NodeName={name} NodeAddr={address} Port={port} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 "
    "RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN"
)

# What OpenPBS gives a job and Slurm's PBS front end does not. Lines "export NAME=value" reach the batch script.
PBS_PROLOG = """\
#!/bin/sh
case ${SLURM_STEP_ID:-} in ''|4294967291) ;; *) exit 0 ;; esac
file=$(TMPDIR=@FOLDER@/nodefiles generate_pbs_nodefile) && chmod 644 "$file" && echo "export PBS_NODEFILE=$file"
echo "export PBS_ENVIRONMENT=PBS_BATCH"
echo "export PBS_QUEUE=$SLURM_JOB_PARTITION"
echo "export NCPUS=$SLURM_CPUS_ON_NODE"
echo "export OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE"
"""


def write(folder, spec, addresses):
    """slurm.conf, gres.conf, mpi.conf and what belongs to them. `addresses`: host names and theirs."""
    for name in ("state", "spool", "devices", "nodefiles"):
        (folder / name).mkdir()
    (folder / "nodefiles").chmod(0o1777)
    extra = ""
    if spec.pbs:
        prolog = folder / "pbs-prolog.sh"
        prolog.write_text(PBS_PROLOG.replace("@FOLDER@", str(folder)), encoding="utf-8")
        prolog.chmod(0o755)
        (folder / "plugstack.conf").write_text("required spank_pbs.so\n", encoding="utf-8")
        extra = f"TaskProlog={prolog}"
    lines = []
    for name, address in addresses.items():
        (folder / "spool" / name).mkdir()
        lines.append(HOST.format(name=name, address=address, port=6818, cpus=spec.cpus, memory=spec.memory, gpus=spec.gpus))
    (folder / "slurm.conf").write_text(
        SLURM.format(folder=folder, login=hosts.LOGIN, requeue_delay=spec.requeue_delay, mpi=spec.mpi,
                     kill_wait=spec.kill_wait, down_after=spec.down_after, extra=extra, hosts="\n".join(lines)),
        encoding="utf-8")
    (folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={folder}/private\n", encoding="utf-8")
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
    gres = ""
    if spec.gpus > 0:  # device nodes of the kind of /dev/null: Slurm counts them and sets CUDA_VISIBLE_DEVICES
        for i in range(spec.gpus):
            os.mknod(folder / f"devices/nvidia{i}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        gres = f"NodeName={','.join(addresses)} Name=gpu File={folder}/devices/nvidia[0-{spec.gpus - 1}]\n"
    (folder / "gres.conf").write_text(gres, encoding="utf-8")
