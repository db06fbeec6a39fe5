package page

import (
	"cmp"
	"slices"
)

// A category of a pod or a signal determines its color. Pods are listed in the
// order of the constants.
type category string

const (
	failing     category = "failing"
	terminating category = "terminating"
	waiting     category = "waiting"
	healthy     category = "ok"
	done        category = "done"
)

var categories = []category{failing, terminating, waiting, healthy, done}

// harmless are reasons of waiting containers that are part of a normal start.
var harmless = []string{"", "ContainerCreating", "PodInitializing"}

// category returns the category of a pod.
func (p *Pod) category() category {
	switch p.Phase {
	case "Failed":
		return failing
	case "Succeeded":
		return done
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.State == "waiting" && !slices.Contains(harmless, c.Reason) {
			return failing
		}
		if c.State == "exited" && c.ExitCode != 0 && !p.Deleting {
			return failing
		}
	}
	if p.Err != "" && !p.Deleting { // also an unsupported volume, which is not mounted
		return failing
	}
	for i := range p.Volumes {
		if p.Volumes[i].Err != "" {
			return failing
		}
	}
	for _, r := range p.Plan.Results {
		if r.Err != "" && !p.Deleting {
			return failing
		}
	}
	ready, all := p.ready()
	switch {
	case p.Deleting:
		return terminating
	case p.Phase == "Running" && ready == all:
		return healthy
	}
	return waiting
}

// ready returns the number of containers that are ready, and that should become ready.
func (p *Pod) ready() (ready, all int) {
	for i := range p.Containers {
		c := &p.Containers[i]
		if c.Kind == "init" || c.Kind == "ephemeral" {
			continue
		}
		all++
		if c.Ready {
			ready++
		}
	}
	return ready, all
}

func (p *Pod) restarts() (n int32) {
	for i := range p.Containers {
		n += p.Containers[i].Restarts
	}
	return n
}

// state returns the phase of a pod, or the reason why it is not as desired.
func (p *Pod) state() string {
	switch {
	case p.Reason != "":
		return p.Reason
	case p.Deleting && p.Phase != "Failed" && p.Phase != "Succeeded":
		return "Terminating"
	}
	for i := range p.Containers {
		if c := &p.Containers[i]; c.State == "waiting" && !slices.Contains(harmless, c.Reason) {
			return c.Reason
		}
	}
	if p.Phase == "Running" {
		if ready, all := p.ready(); ready < all {
			return "Not ready"
		}
	}
	return cmp.Or(p.Phase, "Unknown")
}

// sorted returns the pods by category, then by namespace and name.
func sorted(pods []Pod) []Pod {
	rank := map[category]int{}
	for i, m := range categories {
		rank[m] = i
	}
	return slices.SortedFunc(slices.Values(pods), func(a, b Pod) int {
		return cmp.Or(
			cmp.Compare(rank[a.category()], rank[b.category()]),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID),
		)
	})
}
