"""Settings for all tests."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("untimed")
