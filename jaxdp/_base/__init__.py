"""What everything else stands on: pytrees, checks, rounding, how objects are shown. Nothing here knows a test."""
