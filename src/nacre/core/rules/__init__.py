"""The rules of Core IR: one function a code, one file a group."""
