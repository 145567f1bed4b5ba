"""The binder: NEM programs bound to the hardware of a device, as images of task control blocks."""
