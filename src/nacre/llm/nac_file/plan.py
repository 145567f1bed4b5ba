"""The plan of a file: a text goes on, one token a run, to a token that ends it."""

from __future__ import annotations

from collections.abc import Iterable

from nacre.nac.format.values import Plan
from nacre.nac.mep import assemble
from nacre.nac.mep.plan_sources import plan_of

_HEAD = """
; Text that goes on, each time by the most likely token: the model keeps what it has seen.
;
; Asks for
;   text    what to go on from
;   tokens  how many tokens to add at most
; Asks for a `text that is not empty` where the text has no tokens, and for one of fewer tokens
; where the model does not hold as many.
; Returns the whole text and its ids i64 [1, n].

        src_user_prompt   %text, str, "text"
        src_user_prompt   %tokens, int, "tokens"
        src_constant      %zero, 0
        src_constant      %one, 1
        src_constant      %at, 0
        src_constant      %most, {context}
        res_load_model    0, "model"
        res_load_extern   %tokenizer, tokenizer, 0
encode: preproc_encode    %tokenizer, %text, %list
        tensor_create     %ids, int64, values, %list
        tensor_info       size, %length, %ids, %one
        logic_compare     eq, %is_empty, %length, %zero
        branch_if         %is_empty, ask
        logic_compare     gt, %is_long, %length, %most
        branch_if         %is_long, cut
        math_binary       sub, %left, %most, %length
        math_binary       add, %left, %left, %one
        math_binary       min, %tokens, %tokens, %left
        math_binary       sub, %before, %length, %one

        loop_start        %before
seen:   tensor_extract    %id, %ids, %at
        tensor_create     %token, int64, values, %id
        tensor_create     %place, int64, values, %at
        tensor_manipulate squeeze, %position, %place, %zero
        model_run_static  0, [%token, %position], [%logits]
        math_binary       add, %at, %at, %one
        loop_end          seen

        loop_start        %tokens
next:   tensor_extract    %id, %ids, %at
        tensor_create     %token, int64, values, %id
        tensor_create     %place, int64, values, %at
        tensor_manipulate squeeze, %position, %place, %zero
        model_run_static  0, [%token, %position], [%logits]
        tensor_extract    %row, %logits, %zero
        math_aggregate    argmax, %id, %row
"""
_END = """        src_constant      %end, {end}
        logic_compare     eq, %is_end, %id, %end
        break_loop_if     %is_end, done
"""
_TAIL = """        tensor_create     %new, int64, values, %id
        tensor_combine    concat, %ids, [%ids, %new], %one
        math_binary       add, %at, %at, %one
        loop_end          next

done:   preproc_decode    %tokenizer, %ids, %whole
        return            [%whole, %ids]

ask:    src_user_prompt   %text, str, "text that is not empty"
        branch_if         %one, encode
cut:    src_user_prompt   %text, str, "text of at most {context} tokens"
        branch_if         %one, encode
"""


def generation_plan(context: int, ends: Iterable[int]) -> Plan:
    """The plan of a model that holds so many tokens, with the tokens at which answers end."""
    stops = "".join(_END.format(end=end) for end in sorted(ends))
    text = _HEAD.format(context=context) + stops + _TAIL.format(context=context)
    return plan_of(assemble(text, "<plan>"))
