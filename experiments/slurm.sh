#!/usr/bin/env bash
# One run on several hosts under Slurm:
#
#     sbatch experiments/slurm.sh experiments/frame_window_256_1m.toml --num-shares 16 [other options of train]
#
# One task a GPU, and num_shares a multiple of the GPUs; the tasks find one another through Slurm. Submit it from a
# folder that all hosts see: the run is written to checkpoints/ there. Five minutes before the time limit Slurm sends
# SIGUSR1; the run writes a checkpoint and ends, and the job goes back into the queue, where the same command goes on.

#SBATCH --job-name=alphagateau
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=alphagateau-%j.log

set -euo pipefail

srun --kill-on-bad-exit=1 alphagateau train "$@" &
tasks=$!
is_time_up=false
trap 'is_time_up=true; kill -USR1 "$tasks"' USR1 # srun passes it on to every task

status=0
wait "$tasks" || status=$?
if $is_time_up; then # the signal ended the first wait, not the tasks
    status=0
    wait "$tasks" || status=$?
    if [ "$status" -eq 0 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
fi
exit "$status"
