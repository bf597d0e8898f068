"""Every subscription on one screen: what it receives, who handles it, in what order, how many at once."""

from jobs.subscriptions import Route

ROUTES: list[Route] = []
