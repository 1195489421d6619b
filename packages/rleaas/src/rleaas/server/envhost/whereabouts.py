"""What a version of an environment is served from, and where that is dialled."""

from rlcore import ConflictError

from rleaas.server.outbound import Outbound
from rleaas.server.rules.sources import Source, no_source_reason, parse_source, require_permitted
from rleaas.server.store.tables import FIRST_ORGANISATION, VersionRow


def source_of(version: VersionRow, *, allow_code: bool) -> Source:
    """The source of a version.

    Raises:
        ConflictError: it has none.
        ConfigurationError: it is code, and its organisation may not run any.
    """
    source = parse_source(version.source)
    if source is None:
        reason = version.status_reason or no_source_reason(version.environment.vertical)
        raise ConflictError(
            f"environment {version.environment.name!r} cannot be served: {reason}",
            code="environment_without_source",
        )
    # Asked again at each start: it may be older than the rule, or out of a backup.
    own = version.organisation_id == FIRST_ORGANISATION
    require_permitted(source, may_run_code=own or allow_code)
    return source


def address_of(version: VersionRow, source: Source, outbound: Outbound) -> str:
    """Where a version is dialled that somebody else serves.

    Raises:
        ConfigurationError: it is no place that its organisation may have dialled.
    """
    own = version.organisation_id == FIRST_ORGANISATION
    if own or not source.text.startswith("tcp://"):
        return source.text
    # What came of dialling is told: whoever is not the operator could look around in its
    # network. The address is the one that was looked at, lest the name mean another by now.
    place = outbound.permit(source.text, frozenset({"tcp"}))
    address = place.addresses[0]
    host = f"[{address}]" if ":" in address else address
    return f"tcp://{host}:{place.port}"
