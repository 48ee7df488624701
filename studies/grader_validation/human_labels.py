"""How often graders agree with people.

    crosszero study grader_validation human_labels --input gsm8k_four_models.jsonl --output REPORT.md

The file is OpenAI's example_model_solutions.jsonl (grade-school-math): per problem, solutions by four models that end
in `A: <answer>`, each labelled right or wrong by a person.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from eval import benchmark
from grading.extraction import extract
from grading.verdicts import Grade, Item, grade
from system import durable, json_lines
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.markdown import table
from system.text_safety import markdown_code


def agreement(path: Path) -> list[tuple[str, str, bool, str, Grade]]:
    """Model, problem, label, gold and our grade of every solution in the file."""
    keys, items, task = [], [], benchmark.task_of("gsm8k")
    for index, row in enumerate(json_lines.read(path)):
        gold = extract(str(row.get("ground_truth", "")), "answer-line").answer or ""
        for model, solution in row.items():
            if isinstance(solution, dict) and "is_correct" in solution and isinstance(solution.get("solution"), str):
                keys.append((model, str(index), bool(solution["is_correct"]), gold))
                items.append(Item(task, gold, solution["solution"], extraction="answer-line"))
    if not items:
        raise UserError(
            f"{path} should hold solutions with is_correct and solution, but holds none; check --input",
            code="no-labels",
        )
    return [(*key, result) for key, result in zip(keys, grade(items), strict=True)]


def markdown(rows: list[tuple[str, str, bool, str, Grade]]) -> str:
    """Agreement per model, and every solution whose verdict differs from its label."""
    by_model = []
    for model in dict.fromkeys(row[0] for row in rows):
        ours = [row for row in rows if row[0] == model]
        right = [row[4].verdict == "correct" for row in ours]
        same = sum(is_right == row[2] for is_right, row in zip(right, ours, strict=True))
        by_model.append([model, len(ours), sum(row[2] for row in ours), sum(right), f"{100 * same / len(ours):.2f} %"])
    differ = [row for row in rows if (row[4].verdict == "correct") != row[2]]
    kinds = Counter((row[2], row[4].verdict) for row in differ)
    counted = [
        f"- labelled {'right' if label else 'wrong'}, ours {verdict}: {n}\n" for (label, verdict), n in kinds.items()
    ]
    listed = [
        [model, problem, markdown_code(gold), markdown_code((result.answer or "")[:40]), label, result.verdict]
        for model, problem, label, gold, result in differ
    ]
    agreeing = table(["model", "solutions", "labelled right", "graded right", "agreement"], by_model)
    differing = table(["model", "problem", "gold", "answer", "label", "ours"], listed)
    return f"{agreeing}\n{len(differ)} of {len(rows)} differ:\n{''.join(counted)}\n{differing}"


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--input", type=Path, required=True, help="example_model_solutions.jsonl")
    parser.add_argument("--output", type=Path, required=True, help="the report to write (Markdown)")
    arguments = parser.parse_args()
    report = markdown(agreement(arguments.input))
    durable.write_text(arguments.output, report)
    print(report.split("\n\n")[0])


if __name__ == "__main__":
    run_command(main)
