"""Where the lists and names that are passed to a collective or spec are written, and the steps from there."""

from __future__ import annotations

from spmdlint.analysis.callgraph.calls import Calls, says_who
from spmdlint.analysis.callgraph.reach import Reach
from spmdlint.analysis.evaluation.bindings import passed
from spmdlint.analysis.evaluation.values import Applied, External, Frame, Site
from spmdlint.analysis.variance.element import of_element
from spmdlint.analysis.variance.origins import CONTINUE, Answer, Origins, Property, Reason
from spmdlint.program import summary as s


class Written(Property):
    """Whether a value is a display or a comprehension, or made by a library function, at an operation."""

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        if isinstance(operation, s.Item):
            return of_element(origins, frame, operation)
        made = isinstance(operation, (s.Display, s.Collected, s.Binary))
        if isinstance(operation, s.Call):
            made = any(isinstance(value, External) for value in origins.ev.value(frame, operation.function))
        return Reason(Site(frame.ref, number), "it is written here", "written") if made else CONTINUE


class Spelled(Property):
    """Whether a name, or a tuple that holds it, is spelled as a literal at an operation."""

    def __init__(self, name: str) -> None:
        self.name = name

    def step(self, origins: Origins, frame: Frame, number: int, operation: s.Operation) -> Answer:
        match operation:
            case s.Const(value=value):
                text = f"{self.name!r} is written here"
                return Reason(Site(frame.ref, number), text, "written") if value == self.name else None
            case s.Display(elements=parts) | s.DictDisplay(elements=parts):
                return origins.any_of(frame, parts)
            case s.Subscript(base=whole) | s.Item(value=whole):
                return origins.why(frame, whole)
        return CONTINUE


class Places:
    """Finds where the arguments of an operation are written. One per run."""

    def __init__(self, calls: Calls, reach: Reach) -> None:
        self.calls = calls
        self.ev = calls.ev
        self.reach = reach
        self._lists = Origins(calls.ev, calls, reach, Written())

    def of_list(self, site: Site) -> tuple[Reason, ...]:
        """The steps from where the list passed to a collective is written to the call; none if written in the call."""
        frame, call = self.ev.free_frame(site.ref), self._call(site)
        for given in says_who(self.ev, frame, call) if call is not None else ():
            found = self._lists.why(frame, given)
            if found is not None and found.site != Site(frame.ref, given):
                return tuple(found.chain())
        return ()

    def made(self, site: Site, given: int) -> Site | None:
        """The site where the list passed to an operation is made."""
        found = self._lists.why(self.ev.free_frame(site.ref), given)
        return found.source.site if found is not None else None

    def argument(self, site: Site, parameter: str) -> Site | None:
        """The value that a call passes as a keyword; for a decorator, that of the call that makes the decorator."""
        call = self._call(site)
        while call is not None:
            value = next((each.value for each in call.arguments if each.keyword == parameter), None)
            if value is not None:
                return Site(site.ref, value)
            call = self._call(Site(site.ref, call.function))
        return None

    def of_name(self, site: Site, name: str) -> tuple[Reason, ...]:
        """The steps from where the axis name in a call is spelled to the call; none if it is spelled in the call."""
        frame, call = self.ev.free_frame(site.ref), self._call(site)
        callee = self.ev.callee(frame, call)
        if isinstance(callee, Applied) and callee.site != site:
            # A layer, or a partial of a collective: the name was passed when that was made.
            return self.of_name(callee.site, name)
        known = self.ev.knowledge.get(callee.name) if isinstance(callee, External) else None
        if call is None or known is None:
            return ()
        given = [argument.value for argument in call.arguments]
        if known.axes is not None:
            axis = passed(call, known.axes, known.positional)
            given = [axis] if axis is not None else []
        origins = Origins(self.ev, self.calls, self.reach, Spelled(name))
        for number in given:
            found = origins.why(frame, number)
            if found is not None:
                return tuple(found.chain())
        return ()

    def _call(self, site: Site) -> s.Call | None:
        operation = self.ev.function(self.ev.free_frame(site.ref)).operations[site.number]
        return operation if isinstance(operation, s.Call) else None
