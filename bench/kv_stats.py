"""What paired measurements say: differences with their error, an exact test of right and wrong, numbers in answers."""
import math
import re
import statistics

# Signs, digits with commas in groups of three or none, a decimal part: not the full stop of a sentence.
NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


def paired(values, base):
    """Mean of the differences, and its standard error (none for one pair)."""
    if len(values) != len(base) or not values:
        raise ValueError(f"{len(values)} values beside {len(base)} cannot be paired")
    differences = [value - other for value, other in zip(values, base)]
    error = statistics.stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else None
    return {"mean": statistics.fmean(differences), "stderr": error, "pairs": len(differences)}


def percent(difference):
    """A difference of negative log likelihoods as percent of perplexity, with its standard error."""
    ratio = math.exp(difference["mean"])
    error = difference["stderr"]
    return {"percent": 100 * (ratio - 1), "stderr": None if error is None else 100 * ratio * error}


def mcnemar(losses, gains):
    """Two-sided exact p: how often a fair coin is at least as far from even as losses and gains are."""
    tosses = losses + gains
    tail = sum(math.comb(tosses, heads) for heads in range(min(losses, gains) + 1))
    return min(1.0, 2 * tail / 2 ** tosses)


def normal(number):
    """One spelling for one number: 1,000.50 and 1000.5, 18.00 and 18, -0 and 0."""
    number = number.replace(",", "").replace("$", "").strip()
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    digits = digits.lstrip("0") or "0"
    digits = "0" + digits if digits.startswith(".") else digits
    return digits if digits == "0" else sign + digits


def last_number(text):
    """The last number of an answer, spelled as normal() does; none where there is none. `\\frac{2}{5}` is two numbers, and a
    minus counts only where no digit or bracket is before it: 9-4 ends in 4."""
    found = None
    for match in NUMBER.finditer(text):
        found = match
    if found is None:
        return None
    number = found.group()
    before = text[:found.start()].rstrip()
    if number.startswith("-") and before and (before[-1].isalnum() or before[-1] in ")]}"):
        number = number[1:]
    return normal(number)


def outcomes(right, base):
    """Right and wrong of the same items twice: {item: bool} of a setting and of the base."""
    items = sorted(set(right) & set(base))
    losses = sum(base[item] and not right[item] for item in items)
    gains = sum(right[item] and not base[item] for item in items)
    return {"items": len(items), "right": sum(right[item] for item in items), "both_right": sum(right[i] and base[i] for i in items),
            "losses": losses, "gains": gains, "p": mcnemar(losses, gains)}
