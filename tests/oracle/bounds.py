"""How far an honest engine may be from the oracle, measured by simulating one.

An engine with int8 activations (or float32 sums, or keys rounded to float16 after float32 sums)
cannot equal the float64 result. The oracle run with arithmetic.Engine makes the same kinds of
rounding at the same places, so its distance from the exact result is a sample of the distance an
engine will have. A few such runs, each with roundings independent of the others, give

  rms bound   FACTOR x root mean square of all their errors
  max bound   FACTOR x the greatest of all their errors

For quantised weights roundings are many: the rms over ~70 positions comes out within some 10 % of
the expected value from run to run (selftest.py checks it), and an engine that holds some inputs in
a finer format is nearer, not farther. FACTOR 2 leaves room for groups of 64 (their greatest
element, so their step, is about 1.13 times that of 32) and for another order of sums.

For float weights keys and values before rounding differ by about 2.6e-7 of themselves (measured,
first layer; sums in sequence), but where that tips their rounding to float16 it becomes 5e-4 of the
element, and later layers see that. Tips are few, so a handful of runs would not sample them well.
The simulated runs therefore disturb keys and values by up to 2^-18 (rms 2.2e-6, eight times
float32's) before they are rounded: eight times as many tips, about three times the rms, and a
greatest error near the worst that tips can do. FACTOR 2 on top.
"""

import dataclasses

import numpy as np

import oracle
from arithmetic import FLOAT_TYPES, Engine, Q, TileEngine

FACTOR = 2.0
QUANT_STEPS = (127.0, 126.5, 126.0, 125.5, 125.0, 124.5)
FLOAT_RUNS = 8
TILE_FACTORS = (1.0, 1.11, 1.23, 1.37, 1.59, 1.83)


@dataclasses.dataclass
class Errors:
    max: float
    rms: float
    kl: float  # mean over positions of KL(exact || other), in nats

    def within(self, bound):
        return self.max <= bound.max and self.rms <= bound.rms


def log_softmax(x):
    x = x - np.max(x, axis=-1, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True))


def errors(exact, other):
    """NaN and infinity anywhere make every comparison with a bound false."""
    difference = np.asarray(other, np.float64) - exact
    p, q = log_softmax(exact), log_softmax(np.asarray(other, np.float64))
    kl = float(np.mean(np.sum(np.exp(p) * (p - q), axis=-1)))
    return Errors(float(np.max(np.abs(difference))), float(np.sqrt(np.mean(difference**2))), kl)


def is_float(model):
    return all(model.types[name] in FLOAT_TYPES for name in model.types)


def has_bf16(model):
    return any(kind == Q.BF16 for kind in model.types.values())


def as_float32(model):
    weights = {name: value.astype(np.float32) for name, value in model.weights.items()}
    return dataclasses.replace(model, weights=weights)


def simulations(model, ids, engine=Engine, **options):
    """Logits of several simulated engines; model as loaded (float64)."""
    single = as_float32(model)
    if is_float(model):
        noises = [np.random.default_rng(s) for s in range(FLOAT_RUNS)]
        return [oracle.forward(single, ids, engine(kv_noise=noise, **options)) for noise in noises]
    return [oracle.forward(single, ids, engine(steps=s, **options)) for s in QUANT_STEPS]


def tile_simulations(model, ids):
    """The same of engines that multiply BF16 weights in tiles."""
    single = as_float32(model)
    return [oracle.forward(single, ids, TileEngine(factor=factor)) for factor in TILE_FACTORS]


def bound_from(exact, runs):
    samples = [errors(exact, run) for run in runs]
    return Errors(
        FACTOR * max(s.max for s in samples),
        FACTOR * float(np.sqrt(np.mean([s.rms**2 for s in samples]))),
        float("nan"),
    )
