"""What a call does, as a person reads it: one sentence wherever a call is shown."""
