"""The one error tree of both planes.

Error:
├ ConfigurationError(ValueError)            an argument, setting, URI or config key is wrong
│ ├ AddressError                            not an address this installation can dial
│ └ ExpressionError                         a condition or reward expression is wrong, and where
├ MissingDependencyError(ImportError)       an extra has to be installed
├ TokenRejected(PermissionError)            a signed token is forged, expired or another's
├ RLMeshException(RuntimeError)             the data plane failed: see `rlcore.mesh_errors`
└ RLEaaSError                               the control plane failed: see `rlcore.platform_errors`

Every class is importable from `rlcore`. Facts are attributes, nothing has to be parsed from text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypedDict, TypeVar, Unpack, cast

E = TypeVar("E", bound="Error")


class CommonFacts(TypedDict, total=False):
    """The keyword arguments that every error of the tree accepts."""

    code: str | None
    retryable: bool | None
    hint: str | None
    request_id: str | None


class Error(Exception):
    """Anything that rlcore, rlmesh or rleaas reports as having failed.

    Attributes:
        message: what failed, on which thing.
        code: a stable machine word for the kind of failure.
        retryable: whether the same call may succeed later, unchanged.
        hint: what to do next, when there is something to do.
        request_id: the server's id of the failed request, when there was one.
    """

    default_code: ClassVar[str] = "error"
    default_retryable: ClassVar[bool] = False

    message: str
    code: str
    retryable: bool
    hint: str | None
    request_id: str | None

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retryable: bool | None = None,
        hint: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.default_code if code is None else code
        self.retryable = self.default_retryable if retryable is None else retryable
        self.hint = hint
        self.request_id = request_id

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        if "\n" in self.message:
            # The last line may be a caret's, into which a sentence on the same line would point.
            return f"{self.message}\n{self.hint}"
        return f"{self.message.rstrip('.')}. {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # The constructors differ: an unpickled error is restored from its facts, not built again.
        return restore_error, (type(self), self.args, dict(self.__dict__))


def restore_error(kind: type[E], args: tuple[object, ...], facts: Mapping[str, object]) -> E:
    """Rebuild a pickled error with all of its facts."""
    # With two built-in ancestors only the one that sets the memory layout may make the object.
    maker: type[BaseException] = kind
    while maker.__module__ != "builtins":
        maker = cast("type[BaseException]", maker.__base__)
    error = maker.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class ConfigurationError(Error, ValueError):
    """An argument, a setting, a URI or a configuration key is wrong; nothing was started."""

    default_code = "configuration"


class AddressError(ConfigurationError):
    """The text is not an address that this installation can serve at or dial."""

    default_code = "address"


class ExpressionError(ConfigurationError):
    """An expression cannot be read, or has no value for what it was given.

    The message has the expression, with a caret under the place.

    Attributes:
        reason: what is wrong, in one line.
        expression: the whole text.
        position: the index of the first wrong character; None where no place is to blame.
    """

    default_code = "invalid_expression"

    def __init__(
        self,
        reason: str,
        *,
        expression: str = "",
        position: int | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(reason + _marked(expression, position), **common)
        self.reason = reason
        self.expression = expression
        self.position = position


def _marked(expression: str, position: int | None) -> str:
    if position is None:
        return ""
    begin = expression.rfind("\n", 0, position) + 1
    line, column = expression[begin:].partition("\n")[0], position - begin
    # Of a long line, what is around the place.
    cut = max(0, column - 60)
    shown = line[cut : column + 40].replace("\t", " ")
    return f"\n  {shown}\n  {' ' * (column - cut)}^"


class MissingDependencyError(Error, ImportError):
    """A feature needs a package that is not installed; the hint names the extra."""

    default_code = "missing_dependency"


class TokenRejected(Error, PermissionError):
    """A signed endpoint token is malformed, forged, expired or meant for another subject."""

    default_code = "token_rejected"
