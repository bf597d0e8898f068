"""What a domain says that knows nothing of its events."""

from jobs.journey.hooks import Journeys

JOURNEYS = Journeys()
