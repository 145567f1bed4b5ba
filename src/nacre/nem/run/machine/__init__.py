"""What tasks do: actions on memory, backends that compute, findings."""
