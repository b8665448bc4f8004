"""The data plane: routing, continuous batching, KV and tokens of many replicas, by jumps.

The rules are those of `fleetcast.sim.reference`, and the times agree with it. What makes it fast: while a batch is
unchanged nothing happens but tokens, so a replica jumps over the whole run of iterations to whatever ends it first:
a sequence finishes, KV runs out, or an arrival can be admitted. Work grows with requests, not with tokens.

Arrays of a replica r live in rows: `f[r]` floats, `g[r]` integers (columns below), `due[r]` a binary heap of
(finishing iteration, request) packed into one integer, `fresh[r]` the prompts that complete in the current iteration.
`ends` and `load` are tournament trees over the replicas: next event, and outstanding requests.
"""

from __future__ import annotations

import math

import numpy as np

from fleetcast.sim.kernel.draws import GOLDEN, beta, gamma, mix64
from fleetcast.sim.kernel.jit import INNER, OUTER

# columns of f
END, ANCHOR, BASE, MASS, BUSY, START, DECODED = range(7)
F_COLUMNS = 8
# columns of g
(
    PHASE,
    SEQS,
    CONTEXT,
    ITERATION,
    DONE,
    LAST,
    HEAD,
    TAIL,
    PARTIAL,
    LEFT,
    BLOCKS,
    FRESH,
    WAITING,
    CHANGED,
    COUNT,
    BATCH,
    PAUSED,
) = range(17)
G_COLUMNS = 20 + 16
PHASES = 20  # columns of g from here: how many decoding sequences fill their block at each iteration modulo 16
IDLE, DECODE, PROMPT = range(3)
# fields of control
ROW, TURN, STOP, WANTED, PREEMPTED, REJECTED, POOL, PENDING, REACHED = range(9)
CONTROL = 9
RUNNING, UNMEASURED = range(2)
# routing codes
LEAST_OUTSTANDING, ROUND_ROBIN, PICK, TWO_CHOICES = range(4)
# limits (int64) and rates (float64) of the replica
(
    MAX_SEQS,
    MAX_TOKENS,
    KV_BLOCKS,
    MAX_CONTEXT,
    ROUTING,
    REPLICAS,
    POLICY,
    RESERVES,
    MAX_PROMPTS,
    LOOP,
    LOOP_ROWS,
    ROW_BITS,
) = range(12)
FIXED, PER_TOKEN, PER_KV, MIXING, OVERHEAD, SHAPE, DELAY, STOP_AT = range(8)
CHUNKED, PREFILL_FIRST, BATCHED = range(3)
NEXT_OF_POOL = -2

UNLIMITED = 2**62
SUB_BITS = 8  # 256 bins an octave: a bin is at most 0.4 % wide
_SHIFT = 52 - SUB_BITS
_BIN_ZERO = (1023 - 20) << SUB_BITS  # the first bin starts at 2**-20 s, about a microsecond
BINS = 40 << SUB_BITS  # the last one ends at 2**20 s
_REPLICA_KEY = np.uint64(0xD1B54A32D192ED03)


@INNER
def bin_of(seconds):
    """Return the histogram bin of an iteration of *seconds*: exponent and leading bits of the float itself."""
    return min(BINS - 1, max(0, (np.float64(seconds).view(np.int64) >> _SHIFT) - _BIN_ZERO))


@INNER
def edge_of(bin):
    """Return the upper edge of a histogram bin in seconds."""
    return np.int64((bin + 1 + _BIN_ZERO) << _SHIFT).view(np.float64)


@INNER
def boundary(anchor, base, kvn, k):
    """Return when iteration *k* of a run ends; the order of the operations is part of the contract."""
    return anchor + k * base + kvn * k * (k - 1) / 2


@INNER
def first_boundary(anchor, base, kvn, after, last, time):
    """Return the least k in (after, last] whose boundary is at or after *time*; *last* if there is none before."""
    ahead = time - anchor
    guess = float(last)
    if kvn > 0.0:
        half = kvn / 2.0
        lead = base - half
        guess = (math.sqrt(lead * lead + 4.0 * half * max(ahead, 0.0)) - lead) / (2.0 * half)
    elif base > 0.0:
        guess = ahead / base
    k = last if guess >= last else max(after + 1, math.ceil(guess))
    while k > after + 1 and boundary(anchor, base, kvn, k - 1) >= time:
        k -= 1
    while k < last and boundary(anchor, base, kvn, k) < time:
        k += 1
    return k


@INNER
def push(heap, r, size, item):
    """Add *item* to the binary heap of *size* items."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap[r, parent] <= item:
            break
        heap[r, i] = heap[r, parent]
        i = parent
    heap[r, i] = item


@INNER
def pop_at(heap, r, size, i):
    """Remove item *i* from the binary heap of *size* items."""
    item = heap[r, size - 1]
    size -= 1
    while i > 0:
        parent = (i - 1) >> 1
        if heap[r, parent] <= item:
            break
        heap[r, i] = heap[r, parent]
        i = parent
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[r, child + 1] < heap[r, child]:
            child += 1
        if heap[r, child] >= item:
            break
        heap[r, i] = heap[r, child]
        i = child
    heap[r, i] = item


@INNER
def set_leaf(tree, leaf, value):
    """Write a leaf of a tournament tree (minimum at the root, node 1) and repair the path above it."""
    tree[leaf] = value
    while leaf > 1:
        other = tree[leaf ^ 1]
        value = min(value, other)
        leaf >>= 1
        if tree[leaf] == value:
            break
        tree[leaf] = value


@INNER
def least(tree):
    """Return the lowest index whose leaf holds the minimum."""
    half = tree.shape[0] >> 1
    node = 1
    while node < half:
        node *= 2
        if tree[node] > tree[node + 1]:
            node += 1
    return node - half


@INNER
def growth(g, r, k):
    """Return the blocks that the starts of the next *k* iterations of this batch will ask for."""
    total = (k >> 4) * g[r, SEQS]
    for i in range(1, (k & 15) + 1):
        total += g[r, PHASES + ((1 - g[r, ITERATION] - i) & 15)]
    return total


@INNER
def growth_room(g, r, free):
    """Return the first later iteration start that lacks a block, when *free* are left."""
    rounds = free // g[r, SEQS]
    total = rounds * g[r, SEQS]
    k = rounds * 16
    while True:
        k += 1
        total += g[r, PHASES + ((1 - g[r, ITERATION] - k) & 15)]
        if total > free:
            return k


@INNER
def mixed(decode, prompt, mixing):
    """Return the duration of an iteration of both kinds (see `contract.mix`)."""
    if decode == 0.0 or prompt == 0.0 or mixing == 1.0:
        return decode + prompt
    if mixing == math.inf:
        return max(decode, prompt)
    if mixing == 2.0:
        return math.sqrt(decode * decode + prompt * prompt)
    return math.pow(math.pow(decode, mixing) + math.pow(prompt, mixing), 1.0 / mixing)


@INNER
def key_of(seed, r, iteration):
    """Return the key of the draws of replica *r* from *iteration* on."""
    return mix64(seed + np.uint64(r) * _REPLICA_KEY + np.uint64(iteration) * GOLDEN)


@OUTER
def bridge(f, r, kvn, shape, key, last, time):
    """Return (k, time of boundary k), the first boundary at or after *time* of a noisy run that ends at f[r, END].

    The boundaries between are filled in by Beta bridges, keyed by (run, k).
    """
    low, mass_low = 0, 0.0
    high, mass_high = last, f[r, MASS]
    end = f[r, END]
    while high - low > 1:
        begin = f[r, ANCHOR]
        if low > 0:
            begin = f[r, ANCHOR] + (boundary(0.0, f[r, BASE], kvn, low) / (low * shape)) * mass_low
        share = (time - begin) / (end - begin) if end > begin else 0.5
        k = low + math.ceil(share * (high - low))
        k = min(max(k, low + 1), high - 1)
        part = beta(mix64(key ^ (np.uint64(k) * GOLDEN)), (k - low) * shape, (high - k) * shape)
        mass = mass_low + (mass_high - mass_low) * part
        at = f[r, ANCHOR] + (boundary(0.0, f[r, BASE], kvn, k) / (k * shape)) * mass
        if at >= time:
            high, mass_high, end = k, mass, at
        else:
            low, mass_low = k, mass
    return high, end


@INNER
def cut(f, g, limits, rates, seed, r, need, time):
    """Shorten the run of a replica to the first boundary at which a request that arrives at *time* is admitted.

    *need* is the KV blocks that its admission takes.
    """
    n = g[r, SEQS]
    chunked = limits[POLICY] == CHUNKED
    if limits[POLICY] == BATCHED or n >= limits[MAX_SEQS] or (chunked and n >= limits[MAX_TOKENS]):
        return
    if g[r, PARTIAL] >= 0 or time >= f[r, END]:
        return
    kvn = rates[PER_KV] * n
    if rates[SHAPE] > 0.0:
        key = key_of(seed, r, g[r, COUNT])
        k, end = bridge(f, r, kvn, rates[SHAPE], key, g[r, LAST], time)
    else:
        k = first_boundary(f[r, ANCHOR], f[r, BASE], kvn, g[r, DONE], g[r, LAST], time)
        end = boundary(f[r, ANCHOR], f[r, BASE], kvn, k)
    if k >= g[r, LAST]:
        return
    if limits[KV_BLOCKS] < UNLIMITED:
        free = limits[KV_BLOCKS] - g[r, BLOCKS]
        if limits[RESERVES] == 0:  # prefill-first admits before the decodes ask, chunked after
            free -= growth(g, r, k - g[r, DONE] - (0 if chunked else 1))
        if need > free:
            return
    g[r, LAST] = k
    f[r, END] = end


@INNER
def need_of(limits, prompt, output):
    """Return the KV blocks that a request takes on its first admission."""
    return (prompt + (output if limits[RESERVES] == 1 else 0) + 15) >> 4


@INNER
def answer(row, t, rates, server, after, home, gap, pending_s, pending, control):
    """Closed loop: let whoever has the answer to *row*, which left the server at *t*, send the next request."""
    following = int(after[row])
    if following == NEXT_OF_POOL:
        following = int(control[POOL]) if control[POOL] < server.shape[0] else -1
        control[POOL] += 1
    if following < 0:
        return
    time = t + home[row] + gap[following]
    if time > rates[STOP_AT]:
        return
    server[following] = time
    i = control[PENDING]
    control[PENDING] += 1
    while i > 0:
        parent = (i - 1) >> 1
        if pending_s[parent] < time or (pending_s[parent] == time and pending[parent] < following):
            break
        pending_s[i], pending[i] = pending_s[parent], pending[parent]
        i = parent
    pending_s[i], pending[i] = time, following


@INNER
def pop_pending(pending_s, pending, control):
    """Remove the earliest request that was sent by an answer."""
    size = control[PENDING] - 1
    control[PENDING] = size
    time, row = pending_s[size], pending[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and (
            pending_s[child + 1] < pending_s[child]
            or (pending_s[child + 1] == pending_s[child] and pending[child + 1] < pending[child])
        ):
            child += 1
        if time < pending_s[child] or (time == pending_s[child] and row < pending[child]):
            break
        pending_s[i], pending[i] = pending_s[child], pending[child]
        i = child
    pending_s[i], pending[i] = time, row


@OUTER
def preempt(f, g, r, heap, row, limits, inputs, outputs, produced, last_token, preemptions, following):
    """Send *row* back to the head of the line of its replica, without its blocks."""
    bits = limits[ROW_BITS]
    mask = (np.int64(1) << bits) - 1
    if row == g[r, PARTIAL]:
        g[r, BLOCKS] -= (inputs[row] + produced[row] + 15) >> 4
        g[r, PARTIAL] = -1
    else:
        i = 0
        while heap[r, i] & mask != row:
            i += 1
        left = (heap[r, i] >> bits) - g[r, ITERATION]
        pop_at(heap, r, g[r, SEQS], i)
        produced[row] = outputs[row] - left
        context = inputs[row] + produced[row]
        g[r, SEQS] -= 1
        g[r, CONTEXT] -= context
        g[r, BLOCKS] -= (context - 1 + 15) >> 4  # the block of this iteration was not given yet
        g[r, PHASES + ((context - g[r, ITERATION]) & 15)] -= 1
        g[r, CHANGED] = 1
        last_token[row] = max(f[r, DECODED], last_token[row])
    preemptions[row] += 1
    following[row] = g[r, HEAD]
    if g[r, HEAD] < 0:
        g[r, TAIL] = row
    g[r, HEAD] = row
    g[r, WAITING] += 1


@OUTER
def make_room(
    f, g, r, heap, limits, inputs, outputs, produced, last_token, preemptions, following, admitted, ages
):  # fmt: skip
    """Give the decodes their blocks, oldest first, when not all of them fit; return how many were preempted."""
    bits = limits[ROW_BITS]
    mask = (np.int64(1) << bits) - 1
    n = g[r, SEQS]
    size = 0  # ages: (admission, row, whether it asks for a block), first as a heap, then sorted, oldest first
    for i in range(n):
        row = heap[r, i] & mask
        held = np.int64(inputs[row]) + outputs[row] - ((heap[r, i] >> bits) - g[r, ITERATION])
        asks = 1 if held & 15 == 1 else 0
        push(ages, 0, size, (admitted[row] << (bits + 1)) | (row << 1) | asks)
        size += 1
    if g[r, PARTIAL] >= 0:
        push(ages, 0, size, (admitted[g[r, PARTIAL]] << (bits + 1)) | (g[r, PARTIAL] << 1))
        size += 1
    for i in range(size):
        ages[1, i] = ages[0, 0]
        pop_at(ages, 0, size - i, 0)
    asker, youngest = 0, size - 1
    while asker <= youngest:
        if ages[1, asker] & 1 == 1:
            if g[r, BLOCKS] < limits[KV_BLOCKS]:
                g[r, BLOCKS] += 1
            else:
                row = (ages[1, youngest] >> 1) & mask
                preempt(f, g, r, heap, row, limits, inputs, outputs, produced, last_token, preemptions, following)
                youngest -= 1
                continue
        asker += 1
    return size - 1 - youngest


@INNER
def give_blocks(
    f, g, r, heap, limits, inputs, outputs, produced, last_token, preemptions, following, admitted, ages
):  # fmt: skip
    """Give the decodes the blocks that their next iteration asks for; return how many requests were preempted."""
    need = g[r, PHASES + ((1 - g[r, ITERATION]) & 15)]
    if need <= limits[KV_BLOCKS] - g[r, BLOCKS]:
        g[r, BLOCKS] += need
        return 0
    return make_room(
        f, g, r, heap, limits, inputs, outputs, produced, last_token, preemptions, following, admitted, ages
    )


@INNER
def begin(
    f, g, heap, fresh, t, r, seed, limits, rates, step, server, inputs, outputs,
    produced, last_token, preemptions, following, admitted, ages, control,
):  # fmt: skip
    """Start the next iteration, or run of iterations, of a replica at time *t*, or leave it idle."""
    bits = limits[ROW_BITS]
    limited = limits[KV_BLOCKS] < UNLIMITED
    grows = limited and limits[RESERVES] == 0
    policy = limits[POLICY]
    overhead = rates[OVERHEAD]
    row = g[r, HEAD]
    n = g[r, SEQS]
    taken = 0
    count = 0
    total = 0
    if policy == BATCHED:
        if n == 0:
            size = limits[MAX_SEQS]
            start = math.inf
            if row >= 0:
                start = server[row] + overhead + rates[DELAY]
                if g[r, WAITING] >= size:
                    last = row
                    for _ in range(size - 1):
                        last = following[last]
                    start = min(start, server[last] + overhead)
            if start > t or (start == t and g[r, PHASE] != IDLE):
                g[r, PHASE] = IDLE
                f[r, END] = start
                return
            g[r, CONTEXT] = 0
            while row >= 0 and taken < size and server[row] + overhead <= t:
                if limited:
                    need = need_of(limits, np.int64(inputs[row]), np.int64(outputs[row]))
                    if need > limits[KV_BLOCKS] - g[r, BLOCKS]:
                        break
                    g[r, BLOCKS] += need
                g[r, WAITING] -= 1
                g[r, CONTEXT] += inputs[row]
                fresh[r, taken] = row
                taken += 1
                row = following[row]
            g[r, HEAD] = row
            if row < 0:
                g[r, TAIL] = -1
            g[r, BATCH] = taken
            count = taken
        n = g[r, BATCH]
    else:
        if n == 0 and g[r, PARTIAL] < 0 and row >= 0 and g[r, PHASE] != IDLE and server[row] + overhead == t:
            g[r, PHASE] = IDLE  # whoever arrives at this very moment comes first
            f[r, END] = t
            return
        if grows and n > 0 and policy == CHUNKED:
            control[PREEMPTED] += give_blocks(
                f, g, r, heap, limits, inputs, outputs, produced, last_token, preemptions, following, admitted, ages
            )
            n = g[r, SEQS]
            row = g[r, HEAD]
        seats = limits[MAX_SEQS] - n
        tokens = limits[MAX_TOKENS] - (n if policy == CHUNKED else 0)
        if policy == PREFILL_FIRST:
            seats = min(seats, limits[MAX_PROMPTS])
        if g[r, PARTIAL] >= 0 and seats > 0 and tokens > 0:
            chunk = min(g[r, LEFT], tokens)
            g[r, LEFT] -= chunk
            total += chunk
            taken += 1
            if g[r, LEFT] == 0:
                fresh[r, count] = g[r, PARTIAL]
                count += 1
                g[r, PARTIAL] = -1
        while row >= 0 and taken < seats and total < tokens and server[row] + overhead <= t:
            prompt = np.int64(inputs[row])
            if limited:
                if grows:
                    prompt += produced[row]
                need = need_of(limits, prompt, np.int64(outputs[row]))
                if need > limits[KV_BLOCKS] - g[r, BLOCKS]:
                    break
                g[r, BLOCKS] += need
                admitted[row] = g[r, COUNT]
            g[r, WAITING] -= 1
            chunk = min(prompt, tokens - total)
            total += chunk
            taken += 1
            if chunk < prompt:
                g[r, PARTIAL] = row
                g[r, LEFT] = prompt - chunk
            else:
                fresh[r, count] = row
                count += 1
            row = following[row]
        g[r, HEAD] = row
        if row < 0:
            g[r, TAIL] = -1
        if policy == PREFILL_FIRST and taken == 0 and grows and n > 0:
            control[PREEMPTED] += give_blocks(
                f, g, r, heap, limits, inputs, outputs, produced, last_token, preemptions, following, admitted, ages
            )
            n = g[r, SEQS]
            row = g[r, HEAD]
    g[r, FRESH] = count
    if taken > 0 or n > 0:
        f[r, START] = t
        decodes = 0 if policy == PREFILL_FIRST and taken > 0 else n
        pace = step[decodes]
        if pace != pace:
            control[STOP] = UNMEASURED
            control[WANTED] = decodes
            return
        shape = rates[SHAPE]
        if taken > 0:
            decode = pace + g[r, CONTEXT] * rates[PER_KV] if decodes > 0 else 0.0
            prompts = rates[FIXED] + total * rates[PER_TOKEN] if total > 0 else 0.0
            length = mixed(decode, prompts, rates[MIXING])
            f[r, BASE] = length
            if shape > 0.0:
                length = length * (gamma(key_of(seed, r, g[r, COUNT]), shape) / shape)
            g[r, PHASE] = PROMPT
            g[r, CHANGED] = 1
            f[r, END] = t + length
            return
        kvn = rates[PER_KV] * n
        if g[r, CHANGED] == 1 or shape > 0.0:
            g[r, CHANGED] = 0
            g[r, DONE] = 0
            f[r, ANCHOR] = t
            f[r, BASE] = pace + rates[PER_KV] * g[r, CONTEXT]
        g[r, PHASE] = DECODE
        run = (heap[r, 0] >> bits) - g[r, ITERATION]
        if grows:
            run = min(run, growth_room(g, r, limits[KV_BLOCKS] - g[r, BLOCKS]))
        g[r, LAST] = g[r, DONE] + run
        if shape > 0.0:
            f[r, MASS] = gamma(key_of(seed, r, g[r, COUNT]), run * shape)
            f[r, END] = t + boundary(0.0, f[r, BASE], kvn, run) / (run * shape) * f[r, MASS]
        else:
            f[r, END] = boundary(f[r, ANCHOR], f[r, BASE], kvn, g[r, LAST])
        if row >= 0 and server[row] + overhead > t:
            need = need_of(limits, np.int64(inputs[row]), np.int64(outputs[row]))
            cut(f, g, limits, rates, seed, r, need, server[row] + overhead)
        return
    g[r, PHASE] = IDLE
    f[r, END] = server[row] + overhead if row >= 0 else math.inf


@INNER
def count_run(histogram, n, base, kvn, first, last):
    """Add n tokens per iteration *first* + 1 … *last* of a run, each at its iteration's time, to the histogram."""
    low = base + kvn * first
    high = base + kvn * (last - 1)
    start = bin_of(low)
    if kvn == 0.0 or bin_of(high) == start:
        histogram[start] += n * (last - first)
        return
    j = first
    while j < last:
        here = bin_of(base + kvn * j)
        to = min(last, max(j + 1, math.ceil((edge_of(here) - base) / kvn)))
        histogram[here] += n * (to - j)
        j = to


@INNER
def finish(
    f, g, r, heap, fresh, t, limits, rates, server, inputs, outputs, first_token, finished,
    produced, last_token, histogram, occupancy, after, home, gap, pending_s, pending, control,
):  # fmt: skip
    """End the iteration, or run, that ends at *t*: hand out tokens; return how many requests left."""
    bits = limits[ROW_BITS]
    mask = (np.int64(1) << bits) - 1
    policy = limits[POLICY]
    grows = limits[KV_BLOCKS] < UNLIMITED and limits[RESERVES] == 0
    reserved = limits[KV_BLOCKS] < UNLIMITED and limits[RESERVES] == 1
    loop = limits[LOOP] == 1
    n = g[r, SEQS]
    size = g[r, BATCH] if policy == BATCHED else n
    paused = policy == PREFILL_FIRST and g[r, PHASE] == PROMPT
    length = t - f[r, START]
    f[r, BUSY] += length
    occupancy[g[r, PHASE] - 1, 0 if paused else size] += length
    run = 1
    if g[r, PHASE] == DECODE:
        run = g[r, LAST] - g[r, DONE]
        first = g[r, DONE]
        if g[r, PAUSED] == 1:  # the first token after a pause took the pause as well
            g[r, PAUSED] = 0
            for i in range(n):
                before = max(f[r, DECODED], last_token[heap[r, i] & mask])
                histogram[bin_of(f[r, START] - before + f[r, BASE])] += 1
            first += 1
        if first < g[r, LAST]:
            count_run(histogram, n, f[r, BASE], rates[PER_KV] * size, first, g[r, LAST])
        if grows:
            g[r, BLOCKS] += growth(g, r, run - 1)
        g[r, DONE] = g[r, LAST]
    elif n > 0 and not paused:
        histogram[bin_of(f[r, BASE])] += n
    g[r, COUNT] += run
    left = 0
    now = g[r, ITERATION]
    if paused:
        g[r, PAUSED] = 1 if n > 0 or g[r, PAUSED] == 1 else 0
    else:
        now += run
        g[r, ITERATION] = now
        g[r, CONTEXT] += size * run
        f[r, DECODED] = t
        while n > 0 and heap[r, 0] >> bits == now:
            row = heap[r, 0] & mask
            pop_at(heap, r, n, 0)
            n -= 1
            finished[row] = t
            context = np.int64(inputs[row]) + outputs[row]
            if policy != BATCHED:
                g[r, CONTEXT] -= context
                g[r, CHANGED] = 1
            if grows:
                g[r, BLOCKS] -= (context + 14) >> 4
                g[r, PHASES + ((context - now) & 15)] -= 1
            elif reserved:
                g[r, BLOCKS] -= (context + 15) >> 4
            left += 1
            if loop:
                answer(row, t, rates, server, after, home, gap, pending_s, pending, control)
    for i in range(g[r, FRESH]):
        row = fresh[r, i]
        made = 1
        if grows:
            made = produced[row] + 1
            produced[row] = made
            if made > 1:
                histogram[bin_of(t - last_token[row])] += 1
        if made == 1:
            first_token[row] = t
        if grows or policy == PREFILL_FIRST:
            last_token[row] = t
        context = np.int64(inputs[row]) + made
        if made == outputs[row]:
            finished[row] = t
            if grows:
                g[r, BLOCKS] -= (context + 14) >> 4
            elif reserved:
                g[r, BLOCKS] -= (context + 15) >> 4
            left += 1
            if loop:
                answer(row, t, rates, server, after, home, gap, pending_s, pending, control)
        else:
            push(heap, r, n, ((now + outputs[row] - made) << bits) | row)
            n += 1
            if policy != BATCHED:
                g[r, CONTEXT] += context
            if grows:
                g[r, PHASES + ((context - now) & 15)] += 1
    g[r, FRESH] = 0
    g[r, SEQS] = n
    return left


@OUTER
def advance(
    until, seed, limits, rates, step, server, inputs, outputs, pick, f, g, due, fresh, ends, load,
    first_token, finished, where, following, produced, last_token, preemptions, admitted, ages,
    histogram, occupancy, after, home, gap, pending_s, pending, control,
):  # fmt: skip
    """Play every event up to and including time *until*; the state is in the arrays, so it can be called again."""
    clocked = limits[LOOP_ROWS]
    loop = limits[LOOP] == 1
    replicas = limits[REPLICAS]
    routing = limits[ROUTING]
    sent = control[ROW]
    limited = limits[KV_BLOCKS] < UNLIMITED
    leaves = ends.shape[0] >> 1
    while control[STOP] == RUNNING:
        row = sent
        arrival = server[row] if row < clocked else math.inf
        answered = False
        if loop and control[PENDING] > 0:
            time = pending_s[0]
            if time < arrival or (time == arrival and pending[0] < row):
                arrival, row, answered = time, np.int64(pending[0]), True
        end = ends[1]
        if arrival <= end:
            if arrival > until or arrival == math.inf:
                break
            if answered:
                pop_pending(pending_s, pending, control)
            else:
                sent += 1
            control[REACHED] += 1
            tokens = np.int64(inputs[row]) + outputs[row]
            if (limited and (tokens + 15) >> 4 > limits[KV_BLOCKS]) or tokens > limits[MAX_CONTEXT]:
                control[REJECTED] += 1
                if loop:
                    answer(row, arrival, rates, server, after, home, gap, pending_s, pending, control)
                continue
            r = 0
            if replicas > 1:
                if routing == LEAST_OUTSTANDING:
                    r = least(load)
                elif routing == ROUND_ROBIN:
                    r = control[TURN] % replicas
                else:
                    r = ((pick[row] >> 31) * replicas) >> 32
                    if routing == TWO_CHOICES:
                        other = ((pick[row] & 0x7FFFFFFF) * (replicas - 1)) >> 31
                        if other >= r:
                            other += 1
                        if load[leaves + other] < load[leaves + r] or (
                            load[leaves + other] == load[leaves + r] and other < r
                        ):
                            r = other
            control[TURN] += 1
            where[row] = r
            set_leaf(load, leaves + r, load[leaves + r] + 1)
            if g[r, TAIL] >= 0:
                following[g[r, TAIL]] = row
            else:
                g[r, HEAD] = row
                time = arrival + rates[OVERHEAD]
                if g[r, PHASE] == DECODE:
                    need = need_of(limits, np.int64(inputs[row]), np.int64(outputs[row]))
                    cut(f, g, limits, rates, seed, r, need, time)
                    set_leaf(ends, leaves + r, f[r, END])
                elif g[r, PHASE] == IDLE:
                    f[r, END] = time + rates[DELAY]
                    set_leaf(ends, leaves + r, f[r, END])
            g[r, TAIL] = row
            g[r, WAITING] += 1
            if g[r, PHASE] == IDLE and limits[POLICY] == BATCHED and g[r, WAITING] == limits[MAX_SEQS]:
                f[r, END] = min(f[r, END], arrival + rates[OVERHEAD])
                set_leaf(ends, leaves + r, f[r, END])
        else:
            if end > until:
                break
            r = least(ends)
            left = 0
            if g[r, PHASE] != IDLE:
                left = finish(
                    f, g, r, due, fresh, end, limits, rates, server, inputs, outputs, first_token, finished,
                    produced, last_token, histogram, occupancy, after, home, gap, pending_s, pending, control,
                )  # fmt: skip
            begin(
                f, g, due, fresh, end, r, seed, limits, rates, step, server, inputs, outputs,
                produced, last_token, preemptions, following, admitted, ages, control,
            )  # fmt: skip
            set_leaf(ends, leaves + r, f[r, END])
            if left > 0:
                set_leaf(load, leaves + r, load[leaves + r] - left)
    control[ROW] = sent


@OUTER
def sample(now, limits, rates, f, g, out):
    """Write running, waiting, KV blocks and busy seconds of the fleet at time *now* into *out* (4 floats)."""
    out[:] = 0.0
    grows = limits[KV_BLOCKS] < UNLIMITED and limits[RESERVES] == 0
    for r in range(limits[REPLICAS]):
        out[0] += g[r, SEQS] + g[r, FRESH] + (1 if g[r, PARTIAL] >= 0 else 0)
        out[1] += g[r, WAITING]
        out[2] += g[r, BLOCKS]
        out[3] += f[r, BUSY]
        if g[r, PHASE] != IDLE:
            out[3] += now - f[r, START]
            if g[r, PHASE] == DECODE and grows and f[r, END] > f[r, START]:
                share = (now - f[r, START]) / (f[r, END] - f[r, START])
                out[2] += growth(g, r, int(share * (g[r, LAST] - g[r, DONE] - 1)))
