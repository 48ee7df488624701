"""Files of generations made elsewhere, their columns, and problems to match them to."""

import json

import pyarrow as pa

from contracts import tables


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def columns(table, *names):
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def problems_of(*questions):
    messages = [[{"role": "user", "content": text}] for text in questions]
    rows = [
        {"problem_id": f"p{i}", "task": "math", "messages": messages, "answer": str(i), "meta": "{}"}
        for i, messages in enumerate(messages)
    ]
    return pa.Table.from_pylist(rows, tables.PROBLEM)
