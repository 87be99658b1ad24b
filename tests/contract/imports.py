"""Finds the modules that Python code imports."""

import ast


def imports(node: ast.AST) -> list[str]:
    """Returns the modules that an import statement imports; empty for other nodes and relative
    imports.
    """
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""] if node.level == 0 else []
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
