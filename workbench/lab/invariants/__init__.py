"""The invariants of the runtime, checked at every element, snapshot and commit of a run; one file for each concern.

The checker observes the run through probes and keeps its own model: the content of each channel, the arrival of each
barrier, the expected watermark of each task, the durable checkpoints. The numbers are those of the list of invariants:

====  ========================  ======================================================================================
I1    `consistent_cut`          records received before a barrier are those sent before it, and before it an output
                                holds nothing back
I2    `channels`                a channel is first in, first out, without a gap
I3    `channels`,               barriers increase, once per channel; nothing behind a barrier is taken before the task's
      `consistent_cut`          snapshot
I4    `event_time`              watermarks grow, an operator's is the minimum over its active inputs, none overtakes a
                                record
I5    `event_time`,             a record on time at its source is on time everywhere; no source is idle while it is
      `idleness`                kept from reading
I6    `recovery`                an operator resumes with exactly the state of its checkpoint, including timers
I7    `commits`                 rows become visible only when their checkpoint is durable; in the end they are those of
                                a plain model
I8    `commits`                 a completed checkpoint commits everything before it
I9    (the model of a trial)    settings, schedules and tuning do not change results: each run draws others
I10   `buffers`                 all buffers in use are accounted for; none are left in the end
I11   (the end of a trial)      every run ends, even with the smallest pools
I12   `buffers`                 a task takes no records while its output pool is used up
I13   `commits`                 a checkpoint is complete only when the state of every task is written
I14   (the hash of a trace)     a seed reproduces a run, in any process
I15   `accounting`              input is accounted for by output, at every barrier and in the end
I16   (the runs on threads)     no thread, file or port is leaked
I17   `roots`                   no root is lost, and none is complete before all its records are processed
====  ========================  ======================================================================================

Belongs here: one module for each invariant of a run.
Does not: running (``lab/simulation``).
"""

from workbench.lab.invariants.checker import Checker

__all__ = ["Checker"]
