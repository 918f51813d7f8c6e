"""Noise whose scale is itself private: exact tables and the ladder of scales."""
