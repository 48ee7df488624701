"""Our benchmarks as lm-eval loads them; imported in the evaluation's environment."""

from lm_eval.tasks import TaskManager

from eval.benchmark import BENCHMARKS, TASK_PREFIX


def load_tasks(names, **metadata):
    """lm-eval tasks by benchmark name; for the metadata see eval.lm_eval_task.BenchmarkTask."""
    manager = TaskManager(include_path=str(BENCHMARKS), include_defaults=False, metadata=metadata)
    tasks = manager.load([TASK_PREFIX + name for name in names])["tasks"]
    return {name: tasks[TASK_PREFIX + name] for name in names}
