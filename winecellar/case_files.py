"""What the product says about its dead letters, on one screen. Found by the setting CASE_FILES; see
jobs/dead_letters/case_files.py for what each means."""

from jobs.dead_letters.case_files import CaseFiles
from pricing import case_files as pricing
from pricing import raw_bodies
from winecellar.event_schemas import MESSAGES

CASE_FILES = CaseFiles(
    origin_word="merchant",
    origin=pricing.origin,
    schema=MESSAGES.get,
    mask=raw_bodies.masked,
    raw=pricing.raw,
    readapt=pricing.readapt_letters,
    retake=pricing.retake,
    superseded=pricing.superseded,
)
