"""The errors that a person can mend: each carries one sentence that says what to do."""

__all__ = ["EngineError", "InputError", "UnreachableError"]


class InputError(ValueError):
    """Input or settings that cannot be used as they are.

    The message is one plain sentence for the person at the screen or the command line: what is
    wrong and what to do about it. Pages and the command line show it as it is; ``option`` is what
    the command line adds: the option that mends it. ``code`` names the fault for programs and
    tests, in words joined by hyphens; it stays when the sentence is worded anew.
    """

    def __init__(self, message: str, option: str = "", *, code: str = "") -> None:
        super().__init__(message)
        self.option = option
        self.code = code


class EngineError(InputError):
    """The cluster that was to do the work could not be used, or could not end it."""


class UnreachableError(InputError):
    """An observation has probability zero under the model."""
