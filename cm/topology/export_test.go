package topology

var (
	ParsePolicy = parsePolicy
	ParseScope  = parseScope
)
