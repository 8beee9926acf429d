"""How far an honest engine may be from the oracle, measured by simulating one.

An engine with int8 activations (or float32 sums, or keys rounded to float16 after float32 sums) cannot
equal the float64 result. The oracle run with arithmetic.Engine makes the same kinds of rounding at the
same places, so its distance from the exact result is a sample of the distance an engine will have. A few
such runs, each with roundings independent of the others, give

  rms bound   FACTOR x root mean square of all their errors
  max bound   FACTOR x the greatest of all their errors

FACTOR for quantised weights is 2. Roundings are many and small: the rms over ~70 positions comes out
within some 10 % of the expected value from run to run (selftest.py checks it), and an engine that holds
some inputs in a finer format is nearer, not farther. What remains is room for groups of 64 (their
greatest element, so their step, is about 1.13 times that of 32) and for another order of sums.

FACTOR for float weights is 4. There the sums differ by about 1e-7, but where such a difference tips the
rounding of a key or value to float16 it becomes 5e-4 of that element. These tips are few, so samples of
them spread more; polynomial exponentials of an engine (a few 1e-7) tip some more.
"""

import dataclasses

import numpy as np

import oracle
from arithmetic import FLOAT_TYPES, Engine

QUANT_FACTOR, FLOAT_FACTOR = 2.0, 4.0
QUANT_STEPS = (127.0, 126.5, 126.0, 125.5, 125.0, 124.5)
FLOAT_RUNS = 8


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


def as_float32(model):
    weights = {name: value.astype(np.float32) for name, value in model.weights.items()}
    return dataclasses.replace(model, weights=weights)


def nudged(model, seed):
    """The same model with embeddings off by half a unit of float32 at random: new roundings."""
    embedding = model.weights["token_embd.weight"]
    noise = np.random.default_rng(seed).uniform(-1, 1, embedding.shape).astype(np.float32)
    weights = {**model.weights, "token_embd.weight": embedding * (1 + noise * np.float32(2.0**-23))}
    return dataclasses.replace(model, weights=weights)


def simulations(model, ids, engine=Engine, **options):
    """Logits of several simulated engines; model as loaded (float64)."""
    single = as_float32(model)
    if is_float(model):
        return [oracle.forward(nudged(single, s), ids, engine(**options)) for s in range(FLOAT_RUNS)]
    return [oracle.forward(nudged(single, i), ids, engine(steps=s, **options)) for i, s in enumerate(QUANT_STEPS)]


def bound_from(exact, runs, factor):
    samples = [errors(exact, run) for run in runs]
    return Errors(
        factor * max(s.max for s in samples),
        factor * float(np.sqrt(np.mean([s.rms**2 for s in samples]))),
        float("nan"),
    )


def derive(model, ids, exact):
    factor = FLOAT_FACTOR if is_float(model) else QUANT_FACTOR
    return bound_from(exact, simulations(model, ids), factor)
