"""Every part of the tree has a form in the dialect: what is added to one is added to the other."""

from __future__ import annotations

import inspect

from nacre.nem.syntax import ast

# What the dialect writes and reads, said a second time on purpose: a field that is not written
# would be lost without a word. `start`, `end` and other places are left out.
FIELDS = {
    "Attribute": "name value",
    "AttributeBinding": "name value on",
    "Binary": "op left right",
    "BoolLit": "value",
    "Broken": "declares",  # never written: its document has errors
    "BufferDecl": "name level size align decorators",
    "Characteristic": "key value",
    "CharacteristicsBlock": "groups",
    "Comment": "text",
    "Compressed": "plain form bits tables",
    "Compute": "token op is_sync inputs outputs deps attributes decorators",
    "Conformance": "level types",
    "ConstDecl": "name value",
    "Copy": "token op is_sync dst src deps decorators",
    "Decorator": "name args",
    "DeviceConfig": "name extends spec_version topology characteristics mandatory extended",
    "DeviceRef": "target",
    "Document": "includes configs device header body",
    "FloatLit": "text",
    "Include": "path",
    "IntLit": "value",
    "LetDecl": "name value decorators",
    "ListLit": "items",
    "Loop": "variable first last decorators body",
    "MemLevel": "name index",
    "NameRef": "name",
    "Negated": "operand",
    "Operand": "value decorators",
    "OperandBinding": "operand type",
    "Paren": "inner",
    "PerEngine": "units l1_size",
    "ProgramHeader": "name",
    "Quant": "form axis group_size scales zero_points",
    "RegionDecl": "name region decorators",
    "RegionExpr": "buffer offset extent type",
    "StringLit": "value",
    "Topology": "num_engines l2_size device_units per_engine",
    "TypeAttrs": "elem shape layout strides quant name",
    "TypeFamily": "name params operands attributes variants",
    "TypeParam": "name types",
    "UnitBlock": "units",
    "UnitCharacteristics": "unit entries",
    "UnitCount": "unit count",
    "UnitRef": "unit index",
    "VariantBlock": "variants",
    "VariantDecl": "name operands conformance",
    "VariantRef": "family types variant",
    "Wait": "tokens",
}


def test_every_field_of_the_tree_has_a_form() -> None:
    nodes = {
        name: " ".join(field for field in cls.__struct_fields__ if field not in ast._PLACES)
        for name, cls in inspect.getmembers(ast, inspect.isclass)
        if issubclass(cls, ast.Node) and cls is not ast.Node
    }
    assert nodes == FIELDS, "docs: CONTRIBUTING.md, a new statement in MLIR"
