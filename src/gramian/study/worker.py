"""``python -m gramian.study.worker``: a process that does one thing after another, as it is told on standard input.

A request is a line ``{"function": ..., "arguments": {...}}``, a reply is a line ``{"result": ...}`` or
``{"complaint": ...}``. When standard input ends, because its owner has closed it or has died, the worker stops: what it
is training is saved first.
"""

import json
import os
import queue
import signal
import sys
import threading
from typing import IO, Any

from gramian.study.work import FUNCTIONS, measure, one_line


def main() -> int:
    """Serve until standard input ends."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)  # nothing else that is printed may end up among the replies
        requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        working, ended = threading.Event(), threading.Event()
        threading.Thread(target=_read, args=(sys.stdin, requests, working, ended), daemon=True).start()
        while (request := requests.get()) is not None:
            working.set()
            if ended.is_set():  # nobody waits for it any more
                return 0
            function, arguments = FUNCTIONS[request["function"]], request["arguments"]
            if function is measure:  # if it hangs, nobody but the thread that ends this process can answer
                arguments["note"] = lambda reason: print(json.dumps({"complaint": reason}), file=replies, flush=True)
            try:
                reply = {"result": function(**arguments)}
            except Exception as error:
                reply = {"complaint": one_line(error)}
            except KeyboardInterrupt:
                return 130
            finally:
                working.clear()
            try:
                print(json.dumps(reply), file=replies, flush=True)
            except BrokenPipeError:
                return 1
    return 0


def _read(
    lines: IO[str],
    requests: "queue.SimpleQueue[dict[str, Any] | None]",
    working: threading.Event,
    ended: threading.Event,
) -> None:
    for line in lines:
        requests.put(json.loads(line))
    ended.set()
    requests.put(None)
    if working.is_set():
        os.kill(os.getpid(), signal.SIGTERM)  # training takes it as a wish to stop, and saves


if __name__ == "__main__":
    sys.exit(main())
