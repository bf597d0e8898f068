"""Searches every state that a model can reach, breadth first, so that the first violation has the shortest history.

A model gives its initial state (hashable), the steps that lead on from a state, which states are the same, what must
hold in every state, and when all work is done. The search answers three questions: is any rule ever broken; how
large is the space; and can the work always still be finished once faults end, from wherever they have led. Knows
nothing of queues.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

State = Hashable


class Step(NamedTuple):
    """`what` happens; where it leads; whether it is a fault, which nobody may count on; the rule it breaks, if any."""

    what: str
    after: State
    fault: bool = False
    broken: str | None = None


class Model(Protocol):
    def initial(self) -> State: ...
    def steps(self, state: State) -> Iterator[Step]: ...
    def same(self, state: State) -> State: ...
    def broken_rule(self, state: State) -> str | None: ...
    def is_done(self, state: State) -> bool: ...


@dataclass(frozen=True)
class Counterexample:
    rule: str
    history: list[str]

    def __str__(self) -> str:
        steps = "\n".join(f"    {number:>2}. {what}" for number, what in enumerate(self.history, 1))
        return f"  {self.rule}, after {len(self.history)} steps:\n{steps}"


@dataclass(frozen=True)
class Result:
    """`counterexample` is None when every state keeps every rule. `done` counts the states where all work is done."""

    states: int
    transitions: int
    depth: int
    done: int
    counterexample: Counterexample | None


class TooLargeError(Exception):
    """The space did not end within the bound: the model is not finite, or the bound is too small."""


class _Search:
    def __init__(self, model: Model, bound: int) -> None:
        self.model = model
        self.bound = bound
        self.number: dict[State, int] = {}
        self.states: list[State] = []
        self.came_from = array("l")
        self.depths = array("l")
        # The steps that are not faults, as two columns: what work may be relied upon to go on.
        self.sources, self.targets = array("l"), array("l")
        self.transitions = 0

    def run(self) -> Result:
        self._number(self.model.initial(), -1)
        at = 0
        while at < len(self.states):
            state = self.states[at]
            for step in self.model.steps(state):
                self.transitions += 1
                if step.broken:
                    return self._result(self._history(at, step.broken, step.what))
                fresh = len(self.states)
                target = self._number(self.model.same(step.after), at)
                if not step.fault:
                    self.sources.append(at)
                    self.targets.append(target)
                if target == fresh and (rule := self.model.broken_rule(step.after)):
                    return self._result(self._history(target, rule))
            at += 1
        return self._result(self._stuck())

    def _number(self, state: State, source: int) -> int:
        known = self.number.get(state)
        if known is not None:
            return known
        number = self.number[state] = len(self.states)
        if number >= self.bound:
            raise TooLargeError(f"more than {self.bound} states")
        self.states.append(state)
        self.came_from.append(source)
        self.depths.append(self.depths[source] + 1 if source >= 0 else 0)
        return number

    def _stuck(self) -> Counterexample | None:
        """The nearest state from which no run without faults leads to the end."""
        before: list[list[int]] = [[] for _ in self.states]
        for source, target in zip(self.sources, self.targets, strict=True):
            before[target].append(source)
        reaching = [self.model.is_done(state) for state in self.states]
        frontier = [number for number, done in enumerate(reaching) if done]
        while frontier:
            for source in before[frontier.pop()]:
                if not reaching[source]:
                    reaching[source] = True
                    frontier.append(source)
        stuck = next((number for number, reaches in enumerate(reaching) if not reaches), None)
        return None if stuck is None else self._history(stuck, "the work can never be finished")

    def _history(self, number: int, rule: str, *last: str) -> Counterexample:
        """The names of the steps are found again by walking the path, so that the search need not keep them."""
        path = [number]
        while self.came_from[path[-1]] >= 0:
            path.append(self.came_from[path[-1]])
        path.reverse()
        history = []
        for source, target in pairwise(path):
            after, same = self.states[target], self.model.same
            history.append(next(s.what for s in self.model.steps(self.states[source]) if same(s.after) == after))
        return Counterexample(rule, [*history, *last])

    def _result(self, counterexample: Counterexample | None) -> Result:
        done = 0 if counterexample else sum(map(self.model.is_done, self.states))
        return Result(len(self.states), self.transitions, max(self.depths), done, counterexample)


def search(model: Model, *, bound: int = 1_000_000) -> Result:
    """Visit every reachable state, or stop at the first that breaks a rule. Raises TooLargeError past `bound`."""
    gc.disable()  # millions of tuples, none of them in a cycle: collecting would look at all of them again and again
    try:
        return _Search(model, bound).run()
    finally:
        gc.enable()
