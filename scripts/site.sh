# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What differs from site to site: the one file to edit for all job scripts of slurm/ and pbs/, which source it. Each setting
# can also be given as a variable when a job is submitted, and CONVOY_SITE names another file to take instead of this one.

# Modules to load, for instance 'gcc/12 openmpi/4.1 hdf5/1.12 cuda/12.4'. Empty: none.
modules=${CONVOY_MODULES:-}

# The two programs: what was built here, else those on the PATH. For a container: packaging/in-container.sh, with CONVOY_IMAGE naming
# the image.
# command -v prints where it is.
built() { if [ -x "build/release/$1" ] || ! command -v "${1##*/}"; then echo "build/release/$1"; fi; }
convoy=${CONVOY:-$(built src/cli/convoy)}
preprocess=${CONVOY_PREPROCESS:-$(built preprocess/convoy-preprocess)}

# Under Slurm: what starts the ranks. 'srun --mpi=pmix' where Slurm and the MPI library both speak PMIx ('srun --mpi=list'
# tells), 'mpirun' where not. Under PBS it is mpirun.
launcher=${CONVOY_LAUNCHER:-srun --mpi=pmix}

# What jobs that ask for GPUs compute on: resnet50, resnet152, pbs/train.pbs, and others where sbatch is told --gpus-per-node.
# With 'cuda' a missing driver or module ends a job instead of letting it crawl on the cores. 'cpu': for nodes without GPUs.
gpu_device=${CONVOY_DEVICE:-cuda}

# How often a job may submit itself again before it asks for you.
resubmissions=${CONVOY_RESUBMISSIONS:-100}

# Parallel file systems are often mounted without locks; partitions are only read.
export HDF5_USE_FILE_LOCKING=${HDF5_USE_FILE_LOCKING:-FALSE}

# mpirun notices within half a minute that a host no longer answers, instead of eight: then it ends the job.
export OMPI_MCA_oob_tcp_keepalive_time=${OMPI_MCA_oob_tcp_keepalive_time:-15}
export OMPI_MCA_oob_tcp_keepalive_intvl=${OMPI_MCA_oob_tcp_keepalive_intvl:-5}
export OMPI_MCA_oob_tcp_keepalive_probes=${OMPI_MCA_oob_tcp_keepalive_probes:-3}

# Networks: see docs/cluster.md. For instance
# export UCX_NET_DEVICES=mlx5_0:1 NCCL_IB_HCA=mlx5 NCCL_SOCKET_IFNAME=ib0
