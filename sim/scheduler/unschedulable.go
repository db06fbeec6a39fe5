package scheduler

import (
	"fmt"
	"slices"
	"strings"
)

// An Unschedulable is the error of a pod that no node accepts.
type Unschedulable struct {
	// Nodes is the number of nodes of the cluster.
	Nodes int

	// Reasons has the number of nodes for each reason, such as "Insufficient cpu". A node
	// may have several insufficient resources.
	Reasons map[string]int
}

func (u *Unschedulable) add(reasons []string) {
	if u.Reasons == nil {
		u.Reasons = map[string]int{}
	}
	for _, r := range reasons {
		u.Reasons[r]++
	}
}

// Error returns the message of kube-scheduler, for the condition PodScheduled and the event
// FailedScheduling: "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient
// cpu."
func (u *Unschedulable) Error() string {
	if u.Nodes == 0 {
		return "no nodes available to schedule pods"
	}
	var list []string
	for reason, nodes := range u.Reasons {
		list = append(list, fmt.Sprintf("%d %s", nodes, reason))
	}
	slices.Sort(list)
	return fmt.Sprintf("0/%d nodes are available: %s.", u.Nodes, strings.Join(list, ", "))
}
