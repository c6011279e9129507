"""Steps a job until a step has some description, and back."""

from __future__ import annotations

from workbench.api.job.job import Job


def words_until(job: Job, text: str, limit: int = 300) -> str:
    """Steps until one says so; returns what it says."""
    for _ in range(limit):
        steps = job.stepper.step()
        assert steps, f"the job stopped before {text!r}"
        if text in steps[0].words:
            return steps[0].words
    raise AssertionError(f"no step said {text!r}")


def tells_the_same_again(job: Job, back: int, ahead: int) -> None:
    """Going back shows the scene that was there, and a fork that steps ahead from before it arrives at it."""
    scene = job.stepper.scene().scene
    job.stepper.step(back)
    assert job.stepper.back(back).scene == scene
    fork = job.stepper.fork(scene.step - ahead)
    fork.stepper.step(ahead)
    again = fork.stepper.scene().scene
    assert (again.words, again.facts, again.tasks) == (scene.words, scene.facts, scene.tasks)
    fork.cancel()
    fork.wait()
