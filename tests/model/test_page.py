"""docs/mutations.md says what is true: every planted bug is in its table, and whatever the table names exists.

That its numbers of steps are right is checked where they are found, in test_exhaustive.py.
"""

import ast

from tests.model.mutations import MUTATIONS
from tests.model.page import NONE, ROOT, lines
from tests.model.variants import Broken


def test_the_table_names_every_bug_that_is_planted_and_no_other() -> None:
    assert set(lines()) == {mutation.name for mutation in MUTATIONS} | {bug.value for bug in Broken}
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_what_a_bug_breaks_and_which_scenario_notices_it_are_as_the_page_says() -> None:
    for mutation in MUTATIONS:
        line = lines()[mutation.name]
        assert line.breaks.startswith(mutation.rule + " "), mutation.name
        assert line.scenario == mutation.scenario.__name__, mutation.name


def test_the_page_says_which_bugs_are_planted_in_the_model_and_which_in_the_code() -> None:
    in_code, in_model = {mutation.name for mutation in MUTATIONS}, {bug.value for bug in Broken}
    for name, line in lines().items():
        assert (line.steps != NONE) == (name in in_model), name
        assert (line.scenario != NONE) == (name in in_code), name


def test_every_test_that_the_page_names_exists() -> None:
    for line in lines().values():
        for name in line.tests:
            file, _, function = name.partition("::")
            tree = ast.parse((ROOT / file).read_text())
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name
