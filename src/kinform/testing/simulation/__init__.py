"""Simulation: the whole client stack and a server under virtual time, with faults by a seed.

.. code-block:: python

    outcome = simulate(draw(17, faults="all"), everything_at_once, mirrored)
    outcome.raise_for_divergence()
"""

from __future__ import annotations

from kinform.testing.simulation._oracles.mirror import mirrored
from kinform.testing.simulation._oracles.witness import Divergence
from kinform.testing.simulation._schedule.workload import Draft, Workload
from kinform.testing.simulation.actions import Schedule
from kinform.testing.simulation.drawing import draw
from kinform.testing.simulation.limits import Limits
from kinform.testing.simulation.process import Process
from kinform.testing.simulation.programs import everything_at_once
from kinform.testing.simulation.world import Outcome, World, simulate

__all__ = [
    "Divergence",
    "Draft",
    "Limits",
    "Outcome",
    "Process",
    "Schedule",
    "Workload",
    "World",
    "draw",
    "everything_at_once",
    "mirrored",
    "simulate",
]
