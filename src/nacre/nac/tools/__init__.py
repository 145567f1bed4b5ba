"""Looking at files, comparing them, and taking parts of them: functions over values."""
