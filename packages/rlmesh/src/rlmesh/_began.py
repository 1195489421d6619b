"""When a command of this package began to be imported: the first import of what it needs."""

import time
from typing import Final

AT: Final = time.time()
