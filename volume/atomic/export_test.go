package atomic

// WriteSteps is Write with a callback before each call that changes something.
var WriteSteps = write
