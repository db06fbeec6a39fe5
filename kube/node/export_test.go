package node

var (
	Changed = statusChanged
	Pods    = podCapacity
	Renew   = renewedLease
)
