"""The debugger's commands, as a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import click

from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote, safe
from nacre.base.suggest import did_you_mean
from nacre.cli.arrays import load_input, parse_input
from nacre.cli.debug import views as debug_views
from nacre.cli.debug.arguments import (
    list_some,
    parse_count,
    parse_number,
    refuse_argument,
    require_argument,
)
from nacre.cli.debug.layers import layer_break, require_bundle, show_layers
from nacre.cli.debug.model_values import buffer_name, port_array
from nacre.nem.run.memory.host import host_error
from nacre.nem.run.sessions.statistics import STATISTICS

if TYPE_CHECKING:
    from nacre.cli.debug.debugger import Debugger
    from nacre.nem.run.sessions.session import RunResult

Access = Literal["read", "write", "any"]

_WORD = re.compile(r"\s*(?P<name>[^\s/]*)(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A command: how it is called, what it does, and what its arguments may be."""

    name: str
    usage: str
    summary: str
    run: Callable[[Debugger, str], None]
    alias: str | None = None
    completes: tuple[str, ...] = ()  # kinds of names, see completion.py
    more: str = ""  # for `help NAME`
    after_equals: tuple[str, ...] = ()  # the same, behind a `=`
    after_if: tuple[str, ...] = ()  # and in a condition
    can_pause: bool = False  # between two steps, where somebody interrupts it


def split_command(line: str) -> tuple[str, str]:
    """The command's word and what follows it; the `/x` of `print/x` follows it."""
    match = _WORD.match(line)
    if match is None:
        return "", ""
    return match["name"], match["rest"].strip()


def find_command(word: str) -> Command:
    """The command that a word means: its name, its letter, or a beginning that no other has."""
    for command in COMMANDS:
        if word in (command.name, command.alias):
            return command
    matches = [command for command in COMMANDS if word and command.name.startswith(word)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(command.name for command in matches)
        raise host_error(f"{backquote(word)} may mean {names}")
    hint = did_you_mean(word, [command.name for command in COMMANDS])
    raise host_error(f"no command {backquote(word)}", hint or "`help` lists them")


# Forwards


def _step(debugger: Debugger, argument: str) -> None:
    last = None
    for _ in range(parse_count(argument)):
        result = debugger.session.step()
        if result.status == "finished":
            break
        last = result
        if result.status == "error" or debugger.interrupts.is_asked:
            break
    done = f"{last.task_id} {last.status}" if last is not None and last.task_id else None
    debugger.show_position("interrupted" if debugger.interrupts.is_asked else done)


def _continue(debugger: Debugger, argument: str) -> None:
    refuse_argument(argument)
    debugger.show_result(debugger.session.continue_())


def _run(debugger: Debugger, argument: str) -> None:
    refuse_argument(argument)
    session = debugger.session
    while not debugger.interrupts.is_asked and session.step().status not in ("error", "finished"):
        pass
    debugger.show_position("interrupted" if debugger.interrupts.is_asked else None)


def _until(debugger: Debugger, argument: str) -> None:
    debugger.show_result(debugger.session.run_until(require_argument(argument, "a token")))


def _iteration(debugger: Debugger, argument: str) -> None:
    refuse_argument(argument)
    debugger.show_result(debugger.session.step_iteration())


# Backwards


def _back(debugger: Debugger, argument: str) -> None:
    taken_back = []
    for _ in range(parse_count(argument)):
        one = debugger.session.step_back()
        taken_back += one
        if not one or debugger.interrupts.is_asked:
            break
    if not taken_back and argument != "0":
        raise host_error("there is no step to take back")
    debugger.show_position(f"took back {list_some(taken_back)}" if taken_back else None)


def _back_until(debugger: Debugger, argument: str) -> None:
    target, condition = _split_condition(argument)
    session = debugger.session

    def pause() -> bool:
        return debugger.interrupts.is_asked

    region = re.fullmatch(r"region\s+(?P<name>.+)", target)
    result: RunResult
    if region is not None:
        if condition is not None:
            raise host_error("a condition goes with a task or a line")
        result = session.run_back_until(region=region["name"], pause=pause)
    elif is_digits(target):
        result = session.run_back_until(line=parse_number(target), condition=condition, pause=pause)
    else:
        result = session.run_back_until(task=target or None, condition=condition, pause=pause)
    debugger.show_result(result)


def _restart(debugger: Debugger, argument: str) -> None:
    refuse_argument(argument)
    debugger.restart()
    debugger.show_position("back at the start")


# Stops


def _break(debugger: Debugger, argument: str) -> None:
    target, condition = _split_condition(argument)
    session = debugger.session
    layer = _layer_of_break(debugger, target)
    if layer is not None:
        if condition is not None:
            raise host_error("a condition goes with a task, a line or an iteration")
        starts, label = layer_break(require_bundle(debugger), layer)
        click.echo(str(debugger.add_stop(session.add_breakpoint(condition=starts), label)))
        return
    iteration = re.fullmatch(r"iter(?:ation)?\s+(?P<number>-?[0-9]{1,19})", target)
    if iteration is not None:
        point = session.add_breakpoint(loop_iter=int(iteration["number"]), condition=condition)
        label = f"iteration {point.loop_iter}"
    elif is_digits(target):
        point = session.add_breakpoint(line=parse_number(target), condition=condition)
        label = f"line {point.line}"
    else:
        point = session.add_breakpoint(task=target or None, condition=condition)
        label = f"task {point.task}" if point.task is not None else "any step"
    label += f" if {condition}" if condition is not None else ""
    click.echo(str(debugger.add_stop(point, label)))


def _layer_of_break(debugger: Debugger, target: str) -> str | None:
    """The layer or node that `break` names: behind `layer`, or where no task has the name."""
    match = re.fullmatch(r"layer\s+(?P<name>.+)", target)
    if match is not None:
        return match["name"]
    names = debugger.names
    is_task = bool(debugger.session.steps.by_name.get(target))
    return target if names is not None and target in names.by_name and not is_task else None


def _split_condition(argument: str) -> tuple[str, str | None]:
    target, word, condition = re.sub(r"\s+", " ", f" {argument} ").partition(" if ")
    if word and not condition:
        raise host_error("`if` needs a condition such as `i == 3`")
    return target.strip(), condition.strip() if word else None


def _watch(debugger: Debugger, argument: str) -> None:
    target, condition = _split_condition(require_argument(argument, "a region or `token NAME`"))
    ending = f" if {condition}" if condition is not None else ""
    session = debugger.session
    token = re.fullmatch(r"token\s+(?P<name>.+)", target)
    if token is not None:
        point = session.add_watchpoint(token=token["name"], condition=condition)
        click.echo(str(debugger.add_stop(point, f"token {point.token}{ending}")))
        return
    access: Access = "write"
    for word in get_args(Access):
        if target.endswith(f" {word}"):
            access, target = word, target.removesuffix(word).strip()
    region = buffer_name(debugger.names, target)
    watch = session.add_watchpoint(region=region, access=access, condition=condition)
    kind = "read or write" if access == "any" else access
    where = (
        f"{watch.region.iteration_text}, bytes {watch.region.bytes_text}" if watch.region else ""
    )
    click.echo(str(debugger.add_stop(watch, f"{kind} of {target}{where}{ending}")))


def _stops(debugger: Debugger, argument: str) -> None:
    refuse_argument(argument)
    for stop in debugger.stops:
        click.echo(str(stop))
    if not debugger.stops:
        click.echo("no breakpoints and no watchpoints")


def _delete(debugger: Debugger, argument: str) -> None:
    if argument == "all":
        for stop in list(debugger.stops):
            debugger.delete_stop(stop.number)
        return
    for word in require_argument(argument, "the number of a stop, or `all`").split():
        debugger.delete_stop(parse_number(word))


# Memory, help and the end


def _set(debugger: Debugger, argument: str) -> None:
    try:
        file = parse_input(require_argument(argument, "BUF=FILE"))
    except ValueError as error:
        raise host_error(str(error)) from None
    buffer = buffer_name(debugger.names, file.target)
    if buffer != file.target and debugger.names is not None:
        data = port_array(debugger.names, file.target, file.path)
    else:
        data = load_input(file, debugger.session.plan.program)
    debugger.session.write_buffer(buffer, data)
    click.echo(f"{safe(file.target)} filled from {safe(str(file.path))}")


def _help(debugger: Debugger, argument: str) -> None:
    if argument:
        command = find_command(argument)
        alias = f" (short: {command.alias})" if command.alias else ""
        click.echo(f"{command.name} {command.usage}".rstrip() + alias)
        click.echo(f"{command.summary}{command.more and '. ' + command.more}")
        return
    width = max(len(f"{c.name} {c.usage}") for c in COMMANDS)
    for command in COMMANDS:
        called = f"{command.name} {command.usage}".ljust(width)
        click.echo(f"{command.alias or ' '}  {called}  {command.summary}")
    click.echo("a command may be cut short as long as no other begins so")


def _quit(debugger: Debugger, argument: str) -> None:
    refuse_argument(argument)
    debugger.is_over = True


_ARRAYS = ("ports", "regions", "buffers", "layer", "layers")
_VALUES = ("numbers", "regions", "buffers", "statistics")

COMMANDS = (
    Command("step", "[N]", "take the next step, or N steps", _step, "s",
            more="Stops do not hold it up", can_pause=True),
    Command("continue", "", "run to the next stop or to the end", _continue, "c", can_pause=True),
    Command("until", "TOKEN", "run until a token, or an instance such as tC[3], is satisfied",
            _until, "u", ("tasks",), can_pause=True),
    Command("iteration", "", "run until the current iteration of the loop is complete",
            _iteration, "i", can_pause=True),
    Command("run", "", "run to the end, past all stops", _run, "r", can_pause=True),
    Command("back", "[N]", "take the latest step back, or N steps", _back, can_pause=True),
    Command("back-until", "TASK|LINE|region R [if COND]",
            "go back to before a task, a line, or the last write of a region",
            _back_until, None, ("tasks", "regions", "buffers", "=region"), after_if=_VALUES,
            can_pause=True),
    Command("restart", "", "begin again; stops are kept", _restart),
    Command("break", "TASK|LINE|iter K|layer L [if COND]",
            "pause before a task, line, iteration, or a layer or node of a bundle",
            _break, "b", ("tasks", "=iter", "layer", "=if", "layers"),
            "TASK is a token such as tC, or one instance, tC[3]; COND is about loop variables and "
            "values, such as `i mod 2 == 1 and j > 0`, `Y[0, 0] > 3` or `max(Y) > 100`; "
            "`break if COND` pauses before any step", after_if=_VALUES),
    Command("watch", "REGION|token T [read|write|any] [if COND]",
            "pause after a step that writes (reads, touches) a region", _watch, "w",
            ("regions", "buffers", "=token", "=read", "=write", "=any", "tasks"),
            "The region is watched where it lies in the iteration that comes next; Y[2] is another "
            "iteration, Y[0, 3:5] some elements, BUF[0:64] some bytes of a buffer. In COND, `max`, "
            f"alone is that of the region; there are {', '.join(STATISTICS)}", after_if=_VALUES),
    Command("layers", "[LAYER]",
            "list the layers of a bundle, or show one, by its name or a node's", show_layers, None,
            ("layers",)),
    Command("stops", "", "list breakpoints and watchpoints", _stops),
    Command("delete", "N...|all", "remove breakpoints and watchpoints", _delete, "d", ("=all",)),
    Command("where", "", "say where the run stands", debug_views.show_where),
    Command("list", "[LINE]", "show the program around the next step", debug_views.show_list, "l"),
    Command("tasks", "", "show what is completed, ready and waiting", debug_views.show_tasks),
    Command("tokens", "[TOKEN]", "show which tokens are satisfied", debug_views.show_tokens,
            None, ("tasks",)),
    Command("buffers", "", "show where buffers lie", debug_views.show_buffers),
    Command("print", "REGION|EXPR|layer L",
            "show elements of a region or a number; print/x: bytes, print/d: dequantised",
            debug_views.show_print, "p", (*_ARRAYS, "numbers"),
            "X_i is the region in the latest iteration, X_i[2] or X_2 in another; X[0, :, 3:5] and "
            "X_i[2][0, :] are some of its elements, BUF[0:64] some bytes of a buffer; EXPR is made "
            "of loop variables, constants, elements and such as max(X). Of a bundle, inputs and "
            "outputs go by the model's names and come in its types; `layer L` is what a layer, or "
            "the layers of a node, leave in memory"),
    Command("stats", "REGION", "show min, max and mean of a region, NaN and what is saturated",
            debug_views.show_statistics, None, _ARRAYS,
            "REGION as in `print`; saturated are elements at a limit of their type"),
    Command("compare", "REGION=FILE.npy [within TOL]",
            "compare a region with an array: first difference, count, largest error",
            debug_views.show_comparison, None, _ARRAYS,
            "An array of floats is compared with dequantised values. With TOL, a larger difference "
            "counts as a failed command", after_equals=("files",)),
    Command("who", "REGION", "show who wrote the bytes of a region last", debug_views.show_who,
            None, ("regions", "buffers")),
    Command("set", "BUF=FILE", "fill a buffer from a .npy or raw file; BUF@OFFSET a part",
            _set, None, ("buffers",), after_equals=("files",)),
    Command("trace", "[N|FILE]", "show the last steps, or write all as .json or .csv",
            debug_views.show_trace, "t", ("files",)),
    Command("help", "[CMD]", "list the commands, or explain one", _help, "h", ("commands",)),
    Command("quit", "", "end the session", _quit, "q"),
)  # fmt: skip
