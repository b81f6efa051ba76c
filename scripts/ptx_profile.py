#!/usr/bin/env python3
"""How often a GEMM kernel synchronises: asynchronous instructions of a PTX file, by role and loop.

    scripts/ptx_profile.py [--kernel REGEX] [--static] [--markdown] [--loops] NAME=FILE.ptx ...

Works on any tcgen05 kernel, whoever wrote it. Loops are found in the control-flow graph, so labels and unrolling by the
compiler do not matter; a loop that only polls a barrier is no loop of its own. An instruction's place is

    once        outside every loop
    P/tile P/k  loops that issue TMA loads and no MMA: the copies' loop over tiles, and over k-tiles
    M/tile M/k  the same of MMAs; B/tile, B/k where one loop issues both
    E/tile E/ch loops that read tensor memory: over tiles, over chunks of columns
    other       all other loops

A k-tile has one expect_tx where its loads are issued and one commit where its MMAs are, a chunk one tcgen05.ld: the counts
of /k and /ch are divided by those, so that unrolling does not show, and k-tiles that the compiler took out of the loop (the
rest of an unrolled one) are taken off the place around it. --static leaves the counts as they stand in the text.
"""
import argparse
import re
import sys
from collections import Counter, OrderedDict

PLACES = ["once", "P/tile", "P/k", "M/tile", "M/k", "B/tile", "B/k", "E/tile", "E/ch", "other"]


# --- PTX text -> statements -------------------------------------------------------------------------------------------

def entries(text):
    """(name, body) of every kernel. A body starts behind its first brace and ends before the matching one."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    for match in re.finditer(r"\.entry\s+([\w$.]+)", text):
        begin = text.index("{", match.end()) + 1
        depth, at = 1, begin
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield match.group(1), text[begin:at - 1]


def statements(body):
    """Labels ("label", name) and instructions ("op", guard, opcode, operands). Labels are made unique by block."""
    out, scopes, blocks, at = [], [0], 0, 0
    token = re.compile(r"\s*(?:([{}])|([\w$]+):(?!:)|([^;{}][^;]*);)")
    while True:
        match = token.match(body, at)
        if not match:
            break
        at = match.end()
        brace, label, text = match.groups()
        if brace == "{":
            blocks += 1
            scopes.append(blocks)
        elif brace == "}":
            scopes.pop()
        elif label:
            out.append(("label", label, tuple(scopes)))
        elif not text.startswith("."):
            guard, rest = re.match(r"(@!?[%\w$]+)?\s*(.*)", text.strip(), re.S).groups()
            opcode, *more = re.split(r"\s+", rest, maxsplit=1)
            out.append(("op", guard, opcode, more[0] if more else "", tuple(scopes)))
    return out


# --- control flow -----------------------------------------------------------------------------------------------------

class Flow:
    """Instructions, their successors, and for each the chain of loops around it, outermost first."""

    def __init__(self, body):
        self.ops, labels = [], {}
        for s in statements(body):
            if s[0] == "label":
                labels[s[2], s[1]] = len(self.ops)
            else:
                self.ops.append(s[1:])

        def target(name, scopes):
            for depth in range(len(scopes), 0, -1):
                if (scopes[:depth], name) in labels:
                    return labels[scopes[:depth], name]
            raise KeyError(name)

        n = len(self.ops)
        self.next = [[] for _ in range(n)]
        for i, (guard, opcode, operands, scopes) in enumerate(self.ops):
            falls = True
            if opcode.split(".")[0] == "bra":
                self.next[i].append(target(operands.strip(), scopes))
                falls = guard is not None
            elif opcode in ("ret", "exit", "trap"):
                falls = guard is not None
            if falls and i + 1 < n:
                self.next[i].append(i + 1)
        self.next = [[t for t in ts if t < n] for ts in self.next]
        self.chain = [()] * n
        self.loops = []
        self._nest(set(range(n)), ())

    def _nest(self, nodes, chain):
        for component in self._components(nodes):
            if len(component) == 1:
                only = next(iter(component))
                if only not in self.next[only]:
                    continue
            if polls([self.ops[i] for i in component]):
                continue
            self.loops.append(component)
            inner = chain + (len(self.loops) - 1,)
            for i in component:
                self.chain[i] = inner
            # Without its first instruction the loop falls apart into what it contains.
            self._nest(component - {min(component)}, inner)

    def _components(self, nodes):
        """Strongly connected components (Tarjan), without recursion."""
        index, low, on, stack, found = {}, {}, set(), [], []
        for root in sorted(nodes):
            if root in index:
                continue
            work = [(root, iter(self.next[root]))]
            index[root] = low[root] = len(index)
            stack.append(root)
            on.add(root)
            while work:
                node, successors = work[-1]
                for t in successors:
                    if t not in nodes:
                        continue
                    if t not in index:
                        index[t] = low[t] = len(index)
                        stack.append(t)
                        on.add(t)
                        work.append((t, iter(self.next[t])))
                        break
                    if t in on:
                        low[node] = min(low[node], index[t])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        component = set()
                        while True:
                            t = stack.pop()
                            on.discard(t)
                            component.add(t)
                            if t == node:
                                break
                        found.append(component)
        return sorted(found, key=min)


# --- what counts ------------------------------------------------------------------------------------------------------

def form(op):
    """The row of the table that an instruction belongs to, or None. Default semantics are written out."""
    parts = op[1].split(".")
    has = parts.__contains__
    starts = op[1].startswith

    def order(default):
        semantics = next((p for p in parts if p in ("acquire", "release", "relaxed")), default)
        return f"{semantics}.{'cluster' if has('cluster') else 'cta'}"

    where = " remote" if has("shared::cluster") else ""
    if starts("mbarrier.init"):
        return "mbarrier.init"
    if starts(("mbarrier.try_wait", "mbarrier.test_wait")):
        return f"mbarrier.{parts[1]} {order('acquire')}"
    if starts("mbarrier.arrive.expect_tx"):
        return f"mbarrier.arrive.expect_tx {order('release')}{where}"
    if starts("mbarrier.expect_tx"):
        return f"mbarrier.expect_tx{where}"
    if starts("mbarrier.arrive"):
        return f"mbarrier.{parts[1]} {order('release')}{where}"
    if starts("mbarrier.inval"):
        return "mbarrier.inval"
    if starts("cp.async.bulk.tensor") or starts("cp.reduce.async.bulk.tensor"):
        if has("bulk_group"):
            return "TMA reduce" if starts("cp.reduce") else "TMA store"
        return "TMA load" + (" multicast" if has("multicast::cluster") else "") + (
            " cta_group::2" if has("cta_group::2") else "") + (" cache hint" if has("L2::cache_hint") else "")
    if starts("cp.async.bulk.prefetch"):
        return "TMA prefetch"
    if starts("cp.async.bulk.commit_group"):
        return "bulk commit_group"
    if starts("cp.async.bulk.wait_group"):
        return "bulk wait_group" + (".read" if has("read") else "")
    if starts("cp.async."):
        return ".".join(parts[:3]) if parts[2] in ("commit_group", "wait_group") else "cp.async"
    if starts("tcgen05."):
        group = next((p for p in parts if p.startswith("cta_group")), "")
        kind = parts[1]
        if kind == "commit":
            return f"tcgen05.commit {group}" + (" multicast" if has("multicast::cluster") else "")
        if kind in ("mma", "alloc", "dealloc", "relinquish_alloc_permit", "cp"):
            return f"tcgen05.{kind} {group}"
        if kind in ("ld", "st"):
            return f"tcgen05.{kind}"
        return f"tcgen05.{kind}"
    if starts("fence.proxy"):
        return ".".join(parts)
    if starts(("fence.mbarrier_init", "griddepcontrol", "setmaxnreg", "clusterlaunchcontrol.try_cancel",
               "prefetch.tensormap", "clusterlaunchcontrol.query_cancel.is_canceled")):
        return op[1].replace(".sync.aligned", "").replace(".u32", "").split(".async")[0]
    if starts("barrier.cluster"):
        return f"{'.'.join(parts[:3])} {next((p for p in parts if p in ('acquire', 'release', 'relaxed')), 'acquire' if parts[2] == 'wait' else 'release')}"
    if starts(("bar.sync", "barrier.sync", "bar.arrive", "barrier.cta", "barrier.arrive")):
        return "bar." + ("arrive" if has("arrive") else "sync")
    if starts("bar.warp.sync"):
        return "bar.warp.sync"
    if starts("elect.sync"):
        return "elect.sync"
    return None


def polls(ops):
    """A loop around a try_wait: at most bookkeeping beside it."""
    forms = [f for f in map(form, ops) if f]
    return len(ops) <= 24 and bool(forms) and all("_wait" in f and f.startswith("mbarrier") for f in forms)


def profile(flow):
    """Place -> form -> count, and the same for each innermost loop."""
    everything = [Counter(f for f in (form(flow.ops[i]) for i in loop) if f) for loop in flow.loops]

    def is_in(loop, *words):
        return any(f.startswith(words) for f in everything[loop])

    places, loops = {p: Counter() for p in PLACES}, OrderedDict()
    for i, op in enumerate(flow.ops):
        f = form(op)
        if not f:
            continue
        chain = flow.chain[i]
        place = "once"
        if chain:
            innermost, deepest = chain[-1], not any(c[:len(chain)] == chain and len(c) > len(chain)
                                                    and (is_in(c[-1], "TMA load", "tcgen05.mma", "tcgen05.ld"))
                                                    for c in set(flow.chain))
            loads, mma = is_in(innermost, "TMA load"), is_in(innermost, "tcgen05.mma")
            reads = is_in(innermost, "tcgen05.ld")
            role = "B" if loads and mma else "P" if loads else "M" if mma else "E" if reads else None
            place = "other" if role is None else role + ("/tile" if not deepest else "/ch" if role == "E" else "/k")
            loops.setdefault((chain, place), Counter())[f] += 1
        places[place][f] += 1
    return places, loops


def per_stage(places):
    """`places` per k-tile and per chunk of columns, where everything divides."""
    result = {p: Counter(c) for p, c in places.items()}
    for role, once_a_stage, work in (("P", "mbarrier.arrive.expect_tx", "TMA load"), ("M", "tcgen05.commit", "tcgen05.mma"),
                                     ("B", "tcgen05.commit", "tcgen05.mma"), ("E", "tcgen05.ld", "tcgen05.ld")):
        place = "E/ch" if role == "E" else f"{role}/k"
        count = lambda where, words: sum(n for f, n in result[where].items() if f.startswith(words))
        stages = count(place, once_a_stage)
        if not stages or any(n % stages for n in result[place].values()):
            continue
        result[place] = Counter({f: n // stages for f, n in result[place].items()})
        around = next((p for p in (f"{role}/tile", "once") if count(p, work)), None)
        if around:
            peeled = count(around, work) // count(place, work)
            for f, n in result[place].items():
                result[around][f] -= peeled * n
    return {p: Counter({f: n for f, n in c.items() if n > 0}) for p, c in result.items()}


def table(name, places, markdown):
    used = [p for p in PLACES if places[p]]
    rows = sorted({f for p in used for f in places[p]})
    width = max(map(len, rows + [name]))
    lines = []
    if markdown:
        lines.append(f"| {name} | " + " | ".join(used) + " |")
        lines.append("|---|" + "---:|" * len(used))
        for f in rows:
            lines.append(f"| {f} | " + " | ".join(str(places[p][f] or "") for p in used) + " |")
    else:
        lines.append(name.ljust(width) + "".join(p.rjust(8) for p in used))
        for f in rows:
            lines.append(f.ljust(width) + "".join(str(places[p][f] or "-").rjust(8) for p in used))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--kernel", default="", help="entries whose name matches; without: those with tcgen05.mma")
    parser.add_argument("--static", action="store_true", help="counts as they stand in the text")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--loops", action="store_true", help="every loop by itself")
    args = parser.parse_args()
    shown = 0
    for item in args.files:
        name, _, path = item.rpartition("=")
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        for entry, body in entries(text):
            if not re.search(args.kernel, entry) or (not args.kernel and "tcgen05.mma" not in body):
                continue
            flow = Flow(body)
            places, loops = profile(flow)
            shown += 1
            print(table(name or entry, places if args.static else per_stage(places), args.markdown), end="\n\n")
            if args.loops:
                for (chain, place), counts in loops.items():
                    print(f"  loop {'.'.join(map(str, chain))} {place}: " +
                          ", ".join(f"{n} {f}" for f, n in sorted(counts.items())))
                print()
    return 0 if shown else "no kernel matches"


if __name__ == "__main__":
    sys.exit(main())
