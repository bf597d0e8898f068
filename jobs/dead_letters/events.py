"""The command of dead letters. Pure."""

RUN_REDRIVE = "run_redrive"  # takes a redrive on
