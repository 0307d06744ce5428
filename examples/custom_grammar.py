"""Code execution through a custom tool: the model writes free text that a grammar holds to a form."""

import ast
import operator

import callwright

SUMS = callwright.Grammar(
    "lark",
    """
start: sum
sum: term (("+" | "-" | "*") term)*
term: NUMBER | "(" sum ")"
NUMBER: /[0-9]+/
""",
)
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


@callwright.tool(grammar=SUMS, timeout_s=5)
def calculate(code: str) -> str:
    """Calculate the value of a sum, written as code."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            result: int = OPERATORS[type(node.op)](value(node.left), value(node.right))
            return result
        assert isinstance(node, ast.Constant)
        assert isinstance(node.value, int)
        return node.value

    return str(value(ast.parse(code, mode="eval").body))


if __name__ == "__main__":
    agent = callwright.Agent(model="simulated-native", tools=[calculate])
    result = callwright.run_sync(agent, 'Calculate the value of "(1+2)*14"')
    print(result.to_messages()[1]["tool_calls"][0]["function"]["arguments"])
    print(result.text)
