"""Failures of the data plane.

RLMeshException(RuntimeError)
├ EnvironmentException                      the environment itself failed
├ ModelException                            a served model itself failed
├ ProtocolException                         the peer broke the protocol or does not speak it
│ └ IncompatibleError                       it speaks another generation or edition of it
├ IdentityError                             the served contract is not the registered one
├ InvalidValueError(ValueError)             a value does not belong to its space
│ ├ InvalidActionError
│ └ InvalidObservationError
├ UnsupportedError                          the peer or environment does not offer this
├ TransportError(ConnectionError)
│ ├ ServerUnreachable  BindError
│ ├ SessionBusy  SessionClosed
│ ├ AccessDenied(PermissionError)
│ └ TlsError                                no trust: TLS on one side only, or a certificate
├ CallTimeout(TimeoutError)                 a bounded wait ran out; `layer` says where
├ JournalError                              a run's journal is of another run, in use, or broken
├ RunFailed                                 an evaluation stopped; `partial` keeps what was finished
├ RunInterrupted(KeyboardInterrupt)         the same, by Ctrl-C
├ RecordingError                            what a run did cannot be recorded or written down
└ BundleError(ValueError)                   a recorded bundle is foreign, damaged or tampered with
"""

from __future__ import annotations

from typing import Unpack

from rlcore.errors import CommonFacts, Error


class RLMeshException(Error, RuntimeError):
    """A failure of the data plane."""

    default_code = "rlmesh"


class EnvironmentException(RLMeshException):
    """The environment itself failed, not the way to it.

    Attributes:
        operation: what it was asked to do: `reset`, `step`, `render`, `close`, `make`.
        environment: its id.
        session_id: the session in which it failed.
        episode_id: the episode in which it failed.
        seed: the seed of that episode.
        step: the number of the failed step, from 1.
        action: the action of that step, as text that may be cut off.
        remote_type: the class name of the exception raised by the environment.
        remote_traceback: its traceback; printed with this error's own.
    """

    default_code = "environment_failed"

    def __init__(
        self,
        message: str,
        *,
        operation: str | None = None,
        environment: str | None = None,
        session_id: str | None = None,
        episode_id: str | None = None,
        seed: int | None = None,
        step: int | None = None,
        action: str | None = None,
        remote_type: str | None = None,
        remote_traceback: str | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, **common)
        self.operation = operation
        self.environment = environment
        self.session_id = session_id
        self.episode_id = episode_id
        self.seed = seed
        self.step = step
        self.action = action
        self.remote_type = remote_type
        self.remote_traceback = remote_traceback
        if remote_traceback:
            self.add_note(f"In the environment:\n{remote_traceback.rstrip()}")


class ModelException(RLMeshException):
    """A served model itself failed, not the way to it.

    Attributes:
        operation: what it was asked to do: `resolve`, `predict`, `reset`.
        model: its name.
        address: where it is served.
        environment: the id of the environment that it was asked about.
        episode_id: the episode in which it failed.
        seed: the seed of that episode.
        remote_type: the class name of the exception raised by the model.
        remote_traceback: its traceback; printed with this error's own.
    """

    default_code = "model_failed"

    def __init__(
        self,
        message: str,
        *,
        operation: str | None = None,
        model: str | None = None,
        address: str | None = None,
        environment: str | None = None,
        episode_id: str | None = None,
        seed: int | None = None,
        remote_type: str | None = None,
        remote_traceback: str | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, **common)
        self.operation = operation
        self.model = model
        self.address = address
        self.environment = environment
        self.episode_id = episode_id
        self.seed = seed
        self.remote_type = remote_type
        self.remote_traceback = remote_traceback
        if remote_traceback:
            self.add_note(f"In the model:\n{remote_traceback.rstrip()}")


class ProtocolException(RLMeshException):
    """The peer broke the protocol, or does not speak it."""

    default_code = "protocol"


class IncompatibleError(ProtocolException):
    """The peer speaks another generation or edition of the protocol."""

    default_code = "incompatible"


class IdentityError(RLMeshException):
    """The served environment is not the registered one.

    Attributes:
        environment: the registered name.
        version: the registered version.
        expected: the registered contract digest.
        actual: the digest of what is served.
        differences: dotted paths of what differs, where both contracts are known.
    """

    default_code = "identity"

    def __init__(
        self,
        message: str,
        *,
        environment: str | None = None,
        version: int | None = None,
        expected: str | None = None,
        actual: str | None = None,
        differences: tuple[str, ...] = (),
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, **common)
        self.environment = environment
        self.version = version
        self.expected = expected
        self.actual = actual
        self.differences = differences


class InvalidValueError(RLMeshException, ValueError):
    """A value does not belong to its space.

    Attributes:
        path: where in the value, such as `$.camera[0]`; `$` is the whole of it.
    """

    default_code = "invalid_value"

    def __init__(self, message: str, *, path: str = "$", **common: Unpack[CommonFacts]) -> None:
        super().__init__(message, **common)
        self.path = path


class InvalidActionError(InvalidValueError):
    """An action does not belong to the action space; the environment was not stepped."""

    default_code = "invalid_action"


class InvalidObservationError(InvalidValueError):
    """An environment gave an observation outside its own observation space."""

    default_code = "invalid_observation"


class UnsupportedError(RLMeshException):
    """The peer or the environment does not offer what was asked for."""

    default_code = "unsupported"


class TransportError(RLMeshException, ConnectionError):
    """The way to the peer failed.

    Attributes:
        address: the address that was dialled or bound.
    """

    default_code = "transport"

    def __init__(
        self, message: str, *, address: str | None = None, **common: Unpack[CommonFacts]
    ) -> None:
        super().__init__(message, **common)
        self.address = address


class ServerUnreachable(TransportError):
    """Nothing answers at the address."""

    default_code = "server_unreachable"
    default_retryable = True


class SessionBusy(TransportError):
    """The server already has as many sessions as it can hold.

    Attributes:
        position: how far in the queue the client had come, 1 being the next to be served; None
            where it did not wait.
    """

    default_code = "session_busy"
    default_retryable = True

    def __init__(
        self,
        message: str,
        *,
        position: int | None = None,
        address: str | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, address=address, **common)
        self.position = position


class SessionClosed(TransportError):
    """The session has ended: closed here, ended by the server, or lost with it."""

    default_code = "session_closed"


class AccessDenied(TransportError, PermissionError):
    """The server refused the credential."""

    default_code = "access_denied"


class TlsError(TransportError):
    """The two sides do not trust each other: TLS on one side only, or a certificate that is wrong.

    Attributes:
        expected: the fingerprint that the server's certificate should have, where one was pinned.
        actual: the fingerprint that it has, where that is the difference.
    """

    default_code = "tls"

    def __init__(
        self,
        message: str,
        *,
        expected: str | None = None,
        actual: str | None = None,
        address: str | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, address=address, **common)
        self.expected = expected
        self.actual = actual


class BindError(TransportError):
    """A server could not be bound to its address."""

    default_code = "bind"


class CallTimeout(RLMeshException, TimeoutError):
    """A bounded wait ran out.

    Attributes:
        operation: what was waited for.
        seconds: how long.
        layer: whose patience ended: `connect`, `request`, `environment`, `episode`, `model`, `run`,
            `shutdown`.
    """

    default_code = "timeout"

    def __init__(
        self,
        message: str,
        *,
        operation: str | None = None,
        seconds: float | None = None,
        layer: str | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, **common)
        self.operation = operation
        self.seconds = seconds
        self.layer = layer


class RunFailed(RLMeshException):
    """An evaluation stopped before its last episode.

    Attributes:
        partial: the valid result over the episodes that were finished.
    """

    default_code = "run_failed"

    def __init__(
        self, message: str, *, partial: object = None, **common: Unpack[CommonFacts]
    ) -> None:
        super().__init__(message, **common)
        self.partial = partial


class RunInterrupted(RLMeshException, KeyboardInterrupt):
    """An evaluation was interrupted, by Ctrl-C for example.

    Attributes:
        partial: the valid result over the episodes that were finished.
    """

    default_code = "run_interrupted"

    def __init__(
        self, message: str, *, partial: object = None, **common: Unpack[CommonFacts]
    ) -> None:
        super().__init__(message, **common)
        self.partial = partial


class RecordingError(RLMeshException):
    """What a run did cannot be recorded, or the recording cannot be written down."""

    default_code = "recording"


class BundleError(RLMeshException, ValueError):
    """A recorded bundle cannot be read: it is foreign, damaged or was tampered with.

    Attributes:
        path: the file in the bundle that is wrong, or the bundle itself.
    """

    default_code = "bundle"

    def __init__(
        self, message: str, *, path: str | None = None, **common: Unpack[CommonFacts]
    ) -> None:
        super().__init__(message, **common)
        self.path = path


class JournalError(RLMeshException):
    """A run's journal cannot be gone on with: of another run, in use, no journal, or unwritable.

    Attributes:
        path: the file.
        differences: dotted paths of what differs, where it belongs to another run.
        partial: the valid result over the episodes that were finished, where a run was under way.
    """

    default_code = "journal"

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        differences: tuple[str, ...] = (),
        partial: object = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, **common)
        self.path = path
        self.differences = differences
        self.partial = partial
