"""What a run is and what went wrong in it."""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ._allocator import is_out_of_memory
from ._facts import amended, checked, is_start
from ._guard import harmless, say_once
from ._part import Part


class Described(Part):
    """Facts, and errors of the device's memory."""

    def _checked(self, facts: Mapping[str, Any]) -> Dict[str, str]:
        """Each fact by itself: if one is rejected, the others are still sent."""
        known: Dict[str, str] = {}
        for name, value in facts.items():
            if value is None or value == "":
                continue
            try:
                known[name] = checked(name, value)
            except (TypeError, ValueError) as error:
                self._drop("refused")
                say_once(f"fact {name!s:.64}", error)
        return known

    @harmless
    def facts(self, **facts: Any) -> None:
        """Reports what the run is: framework, version, model, precision (one of PRECISIONS, or as trainers name it), sharding (one of
        SHARDINGS), and the sizes data_parallel, tensor_parallel and pipeline_parallel. A known fact stays until another is given."""
        self._tell(facts, only_new=False)

    @harmless
    def _found(self, facts: Mapping[str, Any]) -> None:
        """What a callback found out. The job's own word counts more."""
        self._tell(facts, only_new=True)

    def _tell(self, facts: Mapping[str, Any], only_new: bool) -> None:
        known = self._checked(facts)
        with self._out.lock:
            for start in [key for key in self._out.standing if is_start(key)]:
                now = amended(start, known, only_new)
                if now != start:
                    self._out.standing = {now if key == start else key: values for key, values in self._out.standing.items()}
                    self._out.put_event(now)
        self._out.flush_if_due()

    @harmless
    def failed(self, error: Optional[BaseException]) -> None:
        """Counts the error if an allocation of device memory failed, and ignores every other. Leaving the `with` calls this; torch's
        own count includes errors that the job caught and did not report."""
        if is_out_of_memory(error) and not getattr(error, "_gpumeter_counted", False):
            error._gpumeter_counted = True  # type: ignore[union-attr]
            self._allocator.failed()
            self._out.flush_if_due()
