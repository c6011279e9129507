"""One representation of a computation on columns: a SQL expression in Spark's dialect, as a syntax tree.

It is written as text (``"dep_delay > 15"``) or with Python operators (``col("dep_delay") > 15``); both build the same
tree. `compile_expression` checks it against a schema and turns it into Arrow compute kernels; `Expression.sql` is the
text that Spark runs. An expression sees one row.

Belongs here: expressions on the columns of one row.
Does not: aggregates and windows.
"""

from workbench.expressions.evaluation.compiling import Compiled, compile_expression
from workbench.expressions.tree.building import coalesce, col, expr, lit, when
from workbench.expressions.tree.expression import Expression
from workbench.expressions.tree.names import ColumnName, column_name, column_names, plain_name, refuse_function

__all__ = [
    "ColumnName",
    "Compiled",
    "Expression",
    "coalesce",
    "col",
    "column_name",
    "column_names",
    "compile_expression",
    "expr",
    "lit",
    "plain_name",
    "refuse_function",
    "when",
]
