"""Models that come quantised: the floats behind their integers, the scales that they bring."""
