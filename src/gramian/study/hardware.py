"""What there is to train on, and how many runs of a study it takes at once."""

from dataclasses import dataclass

from gramian.core.errors import UserError

USED_SHARE = 0.9
"""Share of the free memory that is given away: batches and activations need some too."""
PROCESS_BYTES = {"cpu": 600_000_000, "cuda": 2_000_000_000}
"""Memory of a process beside its runs: torch and the emulators; on a GPU what driver, libraries and recorded graphs
take, for which the share that is not given away suffices unless many processes have theirs there."""
LARGEST = {"cpu": 16, "cuda": 64}
"""Most runs of a population. Beyond it little is gained, and a failure costs more."""


@dataclass(frozen=True)
class Hardware:
    """A machine or a cluster.

    Attributes
    ----------
    device
        ``cpu`` or ``cuda``.
    name
        Of the device.
    places
        GPUs, or cores: populations that it can train at once.
    units
        What ``free_bytes`` are of: the number of GPUs, or of machines.
    free_bytes
        Free memory of one unit.
    cores
        Of all machines together.
    """

    device: str
    name: str
    places: int
    units: int
    free_bytes: int
    cores: int


@dataclass(frozen=True)
class Share:
    """How the hardware is divided.

    Attributes
    ----------
    at_once
        Populations that are trained at the same time.
    largest
        Most runs of one of them.
    """

    at_once: int
    largest: int


def divide(hardware: Hardware, run_bytes: int, workers: int = 0, largest: int = 0) -> Share:
    """Divide the hardware among populations.

    Parameters
    ----------
    hardware
        What there is.
    run_bytes
        Memory of one run, on the device.
    workers
        Populations at once; 0 takes one for each GPU or core, fewer where the memory does not suffice.
    largest
        Most runs of a population; 0 takes what fits.

    Raises
    ------
    UserError
        If not even one run fits.

    Examples
    --------
    >>> divide(Hardware("cuda", "H200", 1, 1, 150 * 10**9, 16), run_bytes=7_100_000_000)
    Share(at_once=1, largest=19)
    >>> divide(Hardware("cpu", "CPU", 8, 1, 32 * 10**9, 8), run_bytes=7_100_000_000)
    Share(at_once=3, largest=1)
    """
    own = PROCESS_BYTES[hardware.device]
    counted = own if hardware.device == "cpu" else 0
    usable = int(USED_SHARE * hardware.free_bytes)
    at_once = workers or max(1, min(hardware.places, hardware.units * (usable // (run_bytes + counted))))
    sharing = -(-at_once // hardware.units)
    room = usable // sharing - counted
    if sharing > 1:
        room = min(room, hardware.free_bytes // sharing - own)
    fitting = room // run_bytes
    if fitting < max(1, largest):
        raise UserError(
            f"not enough memory on {hardware.name}: {max(1, largest)} run(s) in each of {sharing} population(s) at "
            f"once need {(max(1, largest) * run_bytes + own) * sharing / 1e9:.2f} GB, and {usable / 1e9:.2f} GB of "
            f"{hardware.free_bytes / 1e9:.2f} GB may be used; lower replay_capacity in [settings], --population or "
            "--workers"
        )
    return Share(at_once, largest or min(fitting, LARGEST[hardware.device]))
