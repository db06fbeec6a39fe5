package podworker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A ContainerSeen is a container as the runtime last showed it, its newest
// instance.
type ContainerSeen struct {
	Name string `json:"name"`

	// State as the runtime names it: "running", "exited". Since is when it
	// began, zero if that is not known.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`

	// Of an exited one.
	ExitCode int32  `json:"exitCode,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// containersSeen returns the newest instance of each container, by name.
func containersSeen(status *runtime.PodStatus) (seen []ContainerSeen) {
	if status == nil {
		return nil
	}
	newest := map[string]*runtime.ContainerStatus{}
	for i := range status.Containers {
		c := &status.Containers[i]
		if n := newest[c.Name]; n == nil || c.CreatedAt.After(n.CreatedAt) {
			newest[c.Name] = c
		}
	}
	for _, c := range newest {
		s := ContainerSeen{Name: c.Name, State: c.State.String(), Since: c.StartedAt}
		if c.State == runtime.ContainerExited {
			s.Since, s.ExitCode, s.Reason = c.FinishedAt, c.ExitCode, c.Reason
		}
		seen = append(seen, s)
	}
	slices.SortFunc(seen, func(a, b ContainerSeen) int { return cmp.Compare(a.Name, b.Name) })
	return seen
}

// words says it: "main runs for 3s", "main exited with code 3 (Error) 12s ago".
func (c ContainerSeen) words(e Explanation) string {
	what := fmt.Sprintf("%s is %s", c.Name, c.State)
	switch {
	case c.State == runtime.ContainerRunning.String() && !c.Since.IsZero():
		what = fmt.Sprintf("%s has run for %s", c.Name, e.ago(c.Since))
	case c.State == runtime.ContainerExited.String():
		what = fmt.Sprintf("%s exited with code %d", c.Name, c.ExitCode)
		if c.Reason != "" {
			what += " (" + c.Reason + ")"
		}
		if !c.Since.IsZero() {
			what += " " + e.ago(c.Since) + " ago"
		}
	}
	return what
}

// preStops names the containers among running that have a preStop hook, which is
// run before they are told to stop.
func preStops(pod *v1.Pod, running []string) (names []string) {
	if pod == nil {
		return nil
	}
	for c := range podspec.Containers(pod) {
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && slices.Contains(running, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}
