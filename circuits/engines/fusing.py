"""Several passes over the same synapses as one.

At every step the circuit goes three times over V: two sums, V u and V h, and the step of V itself.
To Brian2 these are three objects with a loop each. Where nothing happens between them, and none of
them needs another's result, one loop gives the same numbers and reads V once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brian2 import Network
from brian2.codegen.codeobject import create_runner_codeobj
from brian2.codegen.translation import get_identifiers_recursively
from brian2.core.functions import Function
from brian2.synapses.synapses import StateUpdater, SummedVariableUpdater

if TYPE_CHECKING:
    from brian2.codegen.codeobject import CodeObject


@dataclass(frozen=True)
class Passes:
    """Sums over all-to-all synapses, and the step of the synapses right after them."""

    sums: tuple[Any, ...]
    update: Any

    @property
    def replaced(self) -> list[Any]:
        """The code objects of the separate passes, in order."""
        return [item.codeobj for item in (*self.sums, self.update)]

    def fused(self) -> CodeObject:
        """One code object that does it all: what is summed, then the step, synapse by synapse."""
        group = self.update.group
        summed = [
            {
                "name": f"_sum_{item.target_varname}",
                "target": item.target_var,
                "start": item.template_kwds["_target_start"],
                "of_row": item.template_kwds["_index_var"].name == "_synaptic_post",
            }
            for item in self.sums
        ]
        lines = [
            f"{each['name']} = {item.expression}"
            for each, item in zip(summed, self.sums, strict=True)
        ]
        return create_runner_codeobj(
            group=group,
            code="\n".join([*lines, self.update.abstract_code]),
            template_name="synaptic_step",
            run_namespace={},
            name=f"{group.name}_step_codeobject*",
            check_units=False,  # they were, one by one
            needed_variables=[item.target_varname for item in self.sums],
            template_kwds={"sums": summed},
            codeobj_class=self.update.codeobj_class,
        )


def find_passes(network: Network) -> list[Passes]:
    """What can be fused in a network whose code objects have been made."""
    acting = [item for item in network.sorted_objects if item.active and item._code_objects]
    found = []
    for place, item in enumerate(acting):
        if not (isinstance(item, StateUpdater) and hasattr(item.group, "all_to_all")):
            continue
        first = place
        while first and _belong_together(acting[first - 1], item):
            first -= 1
        passes = Passes(tuple(acting[first:place]), item)
        if passes.sums and _are_independent(passes):
            found.append(passes)
    return found


def _belong_together(before: Any, update: Any) -> bool:
    return (
        isinstance(before, SummedVariableUpdater)
        and before.group.id == update.group.id
        and before.clock is update.clock
    )


def _are_independent(passes: Passes) -> bool:
    """Whether doing all for one synapse after the other is the same as one pass after the other."""
    variables = passes.update.group.variables
    targets = [item.target_var for item in passes.sums]
    code = [*(str(item.expression) for item in passes.sums), passes.update.abstract_code]
    read = [
        variables[name]
        for name in get_identifiers_recursively(code, variables)
        if name in variables
    ]
    used = [value for item in passes.replaced for value in item.variables.values()]
    return (
        # A sum is complete only after the last synapse.
        len({id(target) for target in targets}) == len(targets)
        and not any(target is value for target in targets for value in read)
        # Random numbers come in the order of the synapses.
        and all(value.stateless for value in used if isinstance(value, Function))
    )
