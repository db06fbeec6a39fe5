package atomic

// WriteSteps is Write, which tells of each call that changes something before it.
var WriteSteps = write
