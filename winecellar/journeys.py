"""What the product says about events' journeys, on one screen. Found by the setting JOURNEYS; see
jobs/journey/hooks.py for what each means."""

from alerts import journeys as alerts
from jobs.journey.hooks import Journeys
from pricing import journeys as pricing

JOURNEYS = Journeys(
    origin=lambda message: list(pricing.origin(message)),
    became=alerts.became,
    find=lambda text: [*alerts.find(text), *pricing.find(text)],
    sought=pricing.SOUGHT,
    hint=f"{pricing.HINT}, {alerts.HINT}",
    not_kept=[*pricing.not_kept(), alerts.NOT_KEPT],
)
