package allocation

// Unexported identifiers that external tests use.
var DesiredResources = desiredResources

// Kind returns the target of the step: "pod limit", "pod request" or "container".
func (s ResizeStep) Kind() string { return s.kind.String() }
