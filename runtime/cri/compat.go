package cri

import "github.com/kubeparts/kubeparts/runtime/cri/plan"

// Compat brings back ways of the kubelet that are known quirks, where a user
// could see the difference. The zero value does the right thing.
type Compat struct {
	// MinimumGrace gives every container at least 2 seconds between TERM and
	// KILL, also where the grace period is 0 or 1, as for a pod that is
	// deleted by force (lq-34). Otherwise these are taken at their word.
	MinimumGrace bool

	// ForgetPostStart leaves out the postStart hook of a container if the
	// agent ended between its start and the end of the hook (lq-14).
	// Otherwise the next agent runs the hook, from its beginning.
	ForgetPostStart bool

	// ReplaceCreated leaves an instance that was created and never started
	// lying, and makes another (lq-13). Otherwise that one is started.
	ReplaceCreated bool
}

func (c Compat) plan() plan.Compat { return plan.Compat{ReplaceCreated: c.ReplaceCreated} }

// least returns how many seconds are left for TERM at least, of a grace period
// that may have been spent on a hook or on waiting for a turn (rt-112, rt-118).
func (c Compat) least(grace int64) int64 {
	if c.MinimumGrace {
		return leastGrace
	}
	return min(max(grace, 0), leastGrace)
}
