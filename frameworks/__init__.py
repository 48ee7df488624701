"""Training through the frameworks' own trainers: a folder for each framework, and beside them what all share.

Where a training goes through:
    __main__.py            `python -m frameworks train`, as the workflow starts it
    train_stage.py         one stage from its newest checkpoint to its end
    adapter.py             what each frameworks/<name>/adapter.py offers: it prepares the command and reads its log
    <name>/command.py      a run file as the framework's own command line
    trainer_process.py     runs that command, follows its output, ends it where it hangs or collapses
    training_progress.py   its progress line, and whether it hangs
    <name>/reward_hook.py  what the trainer calls for rewards; rollout_log.py records them
    stage_training_log.py  the table of the training, from the trainer's log and the recorded rewards
"""
