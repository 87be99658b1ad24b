"""The packages that code imports."""

import ast


def imports(node: ast.AST) -> list[str]:
    """Returns the modules in an import statement."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""] if node.level == 0 else []
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
