"""The one loop of the library: any algorithm, over many runs at once, recorded every few steps.

Runs are divided into slabs of equal shape. A slab is one compiled program, vectorised over its runs. Workers (threads,
one per core, or one per accelerator) take one slab after the other, which bounds the memory. Within a slab the host
advances by short chunks of steps; after each it reports progress and stops if it has been asked to.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.core.progress import Progress
from holdfast.core.randomness import fold_in
from holdfast.core.validation import require
from holdfast.core.worker import StoppedError, available_cores, current_worker

# A run whose squared norm passes this has left every region that the theory is about; the next step and its square
# still fit into float32.
DIVERGENCE_LIMIT = 1e8
# Products of float32 numbers in full precision: by default an accelerator rounds the factors to 10 bits.
PRECISION = "highest"
# Chunks grow until one takes about this many seconds: progress and an interrupt wait no longer than that.
CHUNK_SECONDS = 0.25
# How many times longer a chunk may be than the one before: the time of the first, a single step, says little.
LARGEST_GROWTH = 16
# Programs whose lock and length of chunks are remembered: a process that lives on may see any number of them.
REMEMBERED = 256


State = Any
Parameters = Any


def _whole_state(state: State) -> Parameters:
    return state


class Algorithm(NamedTuple):
    """Pure functions that `holdfast.core.run` iterates.

    Attributes:
        init: () -> state. A state is a pytree of arrays and holds what the next step needs, nothing else.
        step: (key, state, number) -> state. The key is fresh in every step; `number` counts the steps done so far, so
            that a schedule or an order of environments can depend on it; batchings and gradients call it `step`.
        parameters: state -> the part of the state that is being fitted; by default all of it. A run has diverged when
            the squared norm of its parameters passes a limit, whatever else is in the state (momenta, moments), and
            what is recorded is computed from them.

    Example, gradient descent on x^2 / 2 with momentum:
        >>> def step(key, state, number):
        ...     x, velocity = state
        ...     velocity = 0.5 * velocity - 0.1 * x
        ...     return x + velocity, velocity
        >>> algorithm = Algorithm(lambda: (jnp.ones(()), jnp.zeros(())), step, lambda state: state[0])
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> round(float(algorithm.parameters(state)), 6)
        0.9
    """

    init: Callable[[], State]
    step: Callable[[jax.Array, State, ArrayLike], State]
    parameters: Callable[[State], Parameters] = _whole_state


class LoopForm(NamedTuple):
    """How the compiled loop is written, which depends on the machine.

    Attributes:
        unroll: steps in one iteration of it. A step cannot write its result over the state that it reads, so an
            iteration of one step ends with a copy of all states; two go there and back between two buffers.
        freezing: whether every step selects between the old state and the new one of each run, so that a run that
            diverges stays where it was. If not, a chunk of steps in which one diverged is repeated with freezing.
    """

    unroll: int
    freezing: bool


# On an H200 the exact law at d = 100 makes 16,450 trajectories a second with freezing, 18,900 without, and 17,000 with
# one step in an iteration. Programs with and without freezing may round differently, and so may two unrolled steps and
# a single one left over, while chunks depend on the clock: a CPU, whose results are the same to the bit, always freezes
# and makes one step in an iteration.
ON_ACCELERATOR, ON_CPU = LoopForm(unroll=2, freezing=False), LoopForm(unroll=1, freezing=True)


class Run(NamedTuple):
    """One run: its algorithm, and what is recorded of it.

    Attributes:
        algorithm: what is iterated.
        observe: parameters of the algorithm -> dictionary of arrays.

    Example:
        >>> algorithm = Algorithm(lambda: jnp.ones(2), lambda key, x, number: 0.9 * x)
        >>> one = Run(algorithm, lambda x: {"norm": jnp.sqrt(x @ x)})
        >>> one.observe(jnp.array([3.0, 4.0]))["norm"].item()
        5.0
    """

    algorithm: Algorithm
    observe: Callable[[Any], dict[str, jax.Array]]


class Records(NamedTuple):
    """The records of all runs.

    Attributes:
        steps: (records,), the number of steps done at each record; the first is 0, the last the end of the run.
        values: name -> (runs, records, ...).
        diverged_at: (runs,), the step at which the run diverged, -1 where it did not. From then on its state stays
            at the last finite one.

    Example:
        >>> records = Records(np.array([0, 10]), {"x": np.array([[1.0, 0.5], [1.0, 2.0]])}, np.array([-1, 7]))
        >>> records.values["x"][records.diverged_at < 0, -1].tolist()
        [0.5]
    """

    steps: np.ndarray
    values: dict[str, np.ndarray]
    diverged_at: np.ndarray


RunBuilder = Callable[[Any, Any], Run]
"""(shared arrays, parameters of one run) -> Run; pure, hashable, and the key of the compile cache."""


def run(
    build: RunBuilder,
    shared: Any,
    parameters: Any,
    seeds: ArrayLike | Sequence[int],
    *,
    steps: int,
    every: int = 1,
    slab: int = 8,
    workers: int | None = None,
    double: bool = False,
    progress: Progress | None = None,
) -> Records:
    """Run `build(shared, parameters[i])` from seed `seeds[i]`, for all i.

    The random numbers of a run depend on its seed and nothing else: not on the other runs, the slab, the number of
    workers or of devices. Results are equal to the bit for slabs of equal size, and up to rounding otherwise.

    Args:
        build: (shared, parameters of one run) -> Run; pure, hashable, and the key of the compile cache, so
            equal builders and equal shapes compile once.
        shared: pytree of arrays that all runs see.
        parameters: pytree of arrays with a leading axis of runs.
        seeds: one for each run.
        steps: T.
        every: steps between records.
        slab: runs in one compiled program; 1 leaves out the vectorisation.
        workers: threads; by default the number of accelerators, or of cores.
        double: compute in float64.
        progress: called with (steps done, steps in all), summed over runs.

    Example, gradient descent on x^2 / 2 from 1 at two step sizes, where x = (1 - eta)^T:
        >>> def build(shared, parameters):
        ...     descent = Algorithm(lambda: jnp.ones(()), lambda key, x, number: (1 - parameters["step_size"]) * x)
        ...     return Run(descent, lambda x: {"x": x})
        >>> records = run(build, None, {"step_size": np.array([0.1, 0.5], np.float32)}, seeds=[0, 1], steps=2)
        >>> records.values["x"].astype(float).round(2).tolist()
        [[1.0, 0.9, 0.81], [1.0, 0.5, 0.25]]
    """
    numbers = np.asarray(seeds, np.uint32)
    count = len(numbers)
    require(count > 0, "seeds must hold at least one seed", "none")
    records = np.unique(np.append(np.arange(0, steps, every), steps)).astype(np.int32)
    # A single run of a larger slab is vectorised too: XLA takes minutes to compile the exact law of one run without it.
    vectorised, slab = slab > 1, min(slab, count)
    devices = available_devices()
    slabs = range(-(-count // slab))
    done, counting = 0, threading.Lock()
    stop, asked_to_stop = threading.Event(), current_worker().stopped
    known = _known(build, slab)
    form = ON_CPU if devices[0].platform == "cpu" else ON_ACCELERATOR

    def report(more: int) -> None:
        nonlocal done
        if progress is not None:
            with counting:
                done += more
                progress(done, count * steps)

    def program(number: int) -> tuple[Any, ...]:
        # The last slab is filled up with copies of its last run, so that all slabs have one shape.
        rows = np.minimum(np.arange(number * slab, (number + 1) * slab), count - 1)
        chosen, seed = jax.tree.map(lambda leaf: leaf[rows] if vectorised else leaf[rows[0]], (parameters, numbers))
        return build, vectorised, shared, chosen, seed

    with jax.enable_x64(double):
        shape = _start.eval_shape(*program(0))

    def work(number: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        real = min(slab, count - number * slab)
        device, precision = devices[number % len(devices)], jax.default_matmul_precision(PRECISION)
        with jax.enable_x64(double), precision, jax.default_device(device):
            advance = _Slab(known, form, program(number), shape)
            history = [advance.record]
            for begin, end in itertools.pairwise(records):
                for steps_done in advance.to(int(begin), int(end)):
                    report(real * steps_done)
                    if stop.is_set() or asked_to_stop():
                        raise StoppedError
                history.append(advance.record)
            values = jax.tree.map(lambda *leaves: np.stack(leaves, -1), *history)
            diverged = np.atleast_1d(np.asarray(advance.carry.diverged_at))
        if not vectorised:
            values = jax.tree.map(lambda leaf: leaf[None], values)
        return jax.tree.map(lambda leaf: np.moveaxis(leaf, -1, 1)[:real], values), diverged[:real]

    threads = min(workers or available_workers(), len(slabs))
    finished = [work(number) for number in slabs] if threads == 1 else _in_threads(work, slabs, threads, stop)
    values = jax.tree.map(lambda *parts: np.concatenate(parts), *[values for values, _ in finished])
    return Records(records, values, np.concatenate([diverged for _, diverged in finished]))


def _in_threads(work: Callable[[int], Any], numbers: range, threads: int, stop: threading.Event) -> list:
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work, number) for number in numbers]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()  # a failure or an interrupt ends the other slabs after their chunk
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]


def available_workers() -> int:
    """One for each accelerator, or for each core this process may use; fewer where an engine shares them out."""
    devices = available_devices()
    if devices[0].platform != "cpu":
        return len(devices)
    return current_worker().threads or len(available_cores())


def available_devices() -> list[jax.Device]:
    """The device that `jax.default_device` chooses, or all of this process."""
    chosen = jax.config.jax_default_device  # type: ignore[attr-defined]
    if isinstance(chosen, jax.Device):
        return [chosen]
    return jax.local_devices(backend=chosen)


class _Carry(NamedTuple):
    state: Any
    diverged_at: jax.Array


class _Known:
    """What all slabs of a program share, and the next call: a cell of a sweep would begin with single steps again.

    Attributes:
        compiling: the lock for looking up or compiling the program: no two threads should compile the same one.
            Execution is asynchronous and takes place outside of the lock.
        steps: in a chunk, adapted to the time they take.
    """

    def __init__(self) -> None:
        self.compiling, self.steps = threading.Lock(), 1

    def adapt(self, steps: int, seconds: float) -> None:
        """Lengthen chunks that were too short, halve those too long. Workers may race: results do not depend on it."""
        if seconds < CHUNK_SECONDS / 2 and steps == self.steps:
            self.steps *= max(2, min(LARGEST_GROWTH, int(CHUNK_SECONDS / 2 / max(seconds, 1e-6))))
        elif seconds > 2 * CHUNK_SECONDS:
            self.steps = max(1, self.steps // 2)


_remembered = lru_cache(maxsize=REMEMBERED)(lambda build, slab: _Known())
_finding = threading.Lock()


def _known(build: RunBuilder, slab: int) -> _Known:
    with _finding:  # the cache itself may make two for two threads
        return _remembered(build, slab)


class _Slab:
    """The runs of one slab as they advance."""

    def __init__(self, known: _Known, form: LoopForm, program: tuple[Any, ...], shape: _Carry):
        build, vectorised, shared, *own = program
        self._known, self._form = known, form
        with known.compiling:
            # Once, and not for every chunk of steps.
            self._program = build, vectorised, jax.device_put(shared), *_on_device(*own)
            # The start and the first record come from zero steps of the program that makes all other steps, so that no
            # second program has to be compiled. The state it is given only has the right shape.
            blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape)
            self.carry, record = _advance(form, *self._program, blank, np.int32(0), np.int32(0))
        self.record = jax.tree.map(np.asarray, record)

    def to(self, begin: int, end: int) -> Iterator[int]:
        """Advance from one record to the next by chunks; yields the steps of each."""
        while begin < end:
            steps = min(self._known.steps, end - begin)
            clock = time.monotonic()
            before = self.carry
            self._advance(before, begin, begin + steps)
            if not self._form.freezing and (np.asarray(self.carry.diverged_at) >= 0).any():
                self._form = self._form._replace(freezing=True)
                self._advance(before, begin, begin + steps)
            self._known.adapt(steps, time.monotonic() - clock)
            yield steps
            begin += steps

    def _advance(self, carry: _Carry, begin: int, end: int) -> None:
        with self._known.compiling:
            self.carry, record = _advance(self._form, *self._program, carry, np.int32(begin), np.int32(end))
        self.record = jax.tree.map(np.asarray, record)


@jax.jit
def _on_device(*arrays: Any) -> Any:
    """These arrays, on the device: for many small ones in a fifth of the time of `jax.device_put`."""
    return arrays


def _over_runs(vectorised: bool, function: Callable) -> Callable:
    return jax.vmap(function) if vectorised else function


@partial(jax.jit, static_argnames=("build", "vectorised"))
def _start(build: RunBuilder, vectorised: bool, shared: Any, parameters: Any, seed: jax.Array) -> _Carry:
    def start(parameters: Any, seed: jax.Array) -> _Carry:
        return _Carry(build(shared, parameters).algorithm.init(), jnp.full((), -1, jnp.int32))

    return _over_runs(vectorised, start)(parameters, seed)


@partial(jax.jit, static_argnames=("form", "build", "vectorised"))
def _advance(
    form: LoopForm,
    build: RunBuilder,
    vectorised: bool,
    shared: Any,
    parameters: Any,
    seed: jax.Array,
    carry: _Carry,
    begin: jax.Array,
    end: jax.Array,
) -> tuple[_Carry, dict[str, jax.Array]]:
    def propose(step: jax.Array, parameters: Any, seed: jax.Array, state: Any) -> tuple[Any, jax.Array]:
        algorithm = build(shared, parameters).algorithm
        key = jax.random.key(seed, impl="threefry2x32")
        proposed = algorithm.step(fold_in(key, step), state, step)
        size = sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(algorithm.parameters(proposed)))
        return proposed, jnp.asarray(size)

    def one_step(step: jax.Array, carry: _Carry) -> _Carry:
        proposed, size = _over_runs(vectorised, partial(propose, step))(parameters, seed, carry.state)
        alive = (carry.diverged_at < 0) & (size < DIVERGENCE_LIMIT)
        diverged_at = jnp.where(alive | (carry.diverged_at >= 0), carry.diverged_at, step + 1)
        if not form.freezing:
            return _Carry(proposed, diverged_at)

        # While all runs of the slab are alive there is nothing to select: that would be a pass over all states. A
        # condition with two branches would copy them; a loop, here of one iteration at most, changes them in place.
        select = partial(_over_runs(vectorised, jnp.where), alive)
        state, _ = jax.lax.while_loop(
            lambda loop: loop[1],
            lambda loop: (jax.tree.map(select, loop[0], carry.state), jnp.zeros((), bool)),
            (proposed, ~jnp.all(alive)),
        )
        return _Carry(state, diverged_at)

    def several_steps(number: jax.Array, carry: _Carry) -> _Carry:
        for step in range(form.unroll):
            carry = one_step(begin + form.unroll * number + step, carry)
        return carry

    def observe(parameters: Any, state: Any) -> dict[str, jax.Array]:
        algorithm, observe = build(shared, parameters)
        return observe(algorithm.parameters(state))

    start = _start(build, vectorised, shared, parameters, seed)
    carry = jax.tree.map(lambda start, given: jnp.where(begin == 0, start, given), start, carry)
    # begin and end are traced, so chunks of all lengths are the same program.
    carry = jax.lax.fori_loop(0, (end - begin) // form.unroll, several_steps, carry)
    if form.unroll > 1:
        carry = jax.lax.fori_loop(end - (end - begin) % form.unroll, end, one_step, carry)
    return carry, _over_runs(vectorised, observe)(parameters, carry.state)
