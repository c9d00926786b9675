"""What a tokenizer's chat template makes of one message, by a process that may be ended.

A template is a program of whoever made the model. The sandbox of transformers keeps it from attributes and files, not
from loops without end or from texts that fill the memory.
"""

import functools
import json
import subprocess
import sys

from hf_qualcode.types import QualcodeError


# A template is a few hundred characters around the message, made in milliseconds. The import takes a second.
_LONGEST = 100_000
_SECONDS = 10  # of a processor
_SECONDS_IN_ALL = 120
_PROGRAM = f"LONGEST, SECONDS = {_LONGEST}, {_SECONDS}" + """
import json, resource, sys
for kind, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, 4 << 30)):
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))
from transformers.utils.chat_template_utils import render_jinja_template
given = json.load(sys.stdin)
try:
    text = render_jinja_template(conversations=[given.pop("messages")], **given)[0][0]
    made = {"text": text} if len(text) <= LONGEST else {"error": f"it makes {len(text)} characters of one message"}
except MemoryError:
    made = {"error": "it fills the memory"}
except Exception as error:
    made = {"error": str(error) or type(error).__name__}
json.dump(made, sys.stdout)
"""


def render(tokenizer, content: str, *, named: str) -> str:
    """One message of the user, and the beginning of the answer, as `tokenizer.apply_chat_template` makes them.

    Args:
        tokenizer (`PreTrainedTokenizerFast`): With a chat template.
        content (`str`): The message.
        named (`str`): What messages call the model.

    Raises:
        `QualcodeError`: If the template fails, does not end, or makes too much.
    """
    given = {
        "messages": [{"role": "user", "content": content}],
        "chat_template": tokenizer.get_chat_template(),
        "add_generation_prompt": True,
        "enable_thinking": False,
        **tokenizer.special_tokens_map,
    }
    made = _made(json.dumps(given, default=str))
    if "text" not in made:
        reason = " ".join(made["error"].split())[:200]
        raise QualcodeError(
            f"chat template of reranker {named} cannot be used: {reason}; copy or download the model again, or name "
            "another"
        )
    return made["text"]


@functools.lru_cache(maxsize=64)
def _made(given: str) -> dict[str, str]:
    """`text`, or `error`. Remembered: the process takes a second to start."""
    try:
        child = subprocess.run(
            # -P: not from modules that lie in the present folder.
            [sys.executable, "-P", "-c", _PROGRAM],
            input=given.encode(),
            capture_output=True,
            timeout=_SECONDS_IN_ALL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"it is not done after {_SECONDS_IN_ALL} seconds"}
    if child.returncode < 0:
        return {"error": f"it is not done after {_SECONDS} seconds, or fills the memory"}
    try:
        return json.loads(child.stdout)
    except ValueError:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        return {"error": lines[-1] if lines else f"its process ended with {child.returncode}"}
