"""The product's judges of what is wrong, on one screen. Found by the setting ALARM_JUDGES (jobs/alarms/judges.py)."""

from winecellar.purchases import alarms as purchases

JUDGES = [purchases.JUDGE]
