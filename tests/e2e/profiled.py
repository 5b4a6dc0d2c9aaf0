"""The daemon, and gpumeter-profiler beside it."""
from pathlib import Path

from harness import Daemon, Page, Program, wait_until


class Profiled(Daemon):
    """Both with this configuration. The log has both programs' lines, and the page both pages' series."""

    def __init__(self, config: Path, *arguments: str, state: "str | None" = None):
        super().__init__(f"--config.file={config}", *(arguments or ["--collector.disable-defaults"]), state=state)
        procfs = [each for each in arguments if each.startswith("--path.procfs")]
        self.profiler = Program("gpumeter-profiler", self, config, *procfs, env={"STATE_DIRECTORY": state or self.folder.name})
        try:
            wait_until(self.profiler.file.exists, "gpumeter-profiler works")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception) -> None:
        self.profiler.__exit__()
        super().__exit__(*exception)

    @property
    def log(self) -> str:
        return super().log + (self.profiler.log if hasattr(self, "profiler") else "")

    def page(self, query: str = "") -> Page:
        page = super().page(query)
        page.update(self.profiler.page())
        return page

    def stop(self, *arguments, **named) -> tuple[int, float]:
        assert self.profiler.stop() == 0, self.log
        return super().stop(*arguments, **named)
