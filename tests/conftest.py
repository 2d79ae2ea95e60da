"""Settings of the whole test run. Fixtures live beside the tests that use them."""

import os

from hypothesis import HealthCheck, settings

# CI draws the same examples every time: a change fails because of what it changed. Elsewhere every run draws new ones.
# No deadline: the first query of a process pays for start-up, and how long that takes says nothing about the library.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("explore"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")
