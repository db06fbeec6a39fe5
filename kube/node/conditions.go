package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Pressure says of what the node has too little.
type Pressure struct{ Memory, Disk, PID bool }

// A Health says what keeps a node from being ready, nil being good. The zero
// value is healthy.
type Health struct {
	// Unknown: the agent has just begun to look. The node stays as ready as it
	// was, for unknownTime at most, so that an agent that is started anew does
	// not make it unready for a moment.
	Unknown bool

	// Runtime: the runtime does not answer, or cannot start containers.
	Runtime error

	// Checks are further things that the node can't do without, by name; the
	// kubelet has one, "PLEG". They count as the runtime's.
	Checks []Check

	// Network: pods get none.
	Network error

	// Storage: volumes of some driver can't be had yet.
	Storage error

	// Shutdown: the machine is about to stop; see [ErrShutdown].
	Shutdown error

	// Warning is added to the message of a ready node: what it could do with,
	// and does without (ns-11).
	Warning string
}

// A Check is the outcome of a named check.
type Check struct {
	Name string
	Err  error // nil: all is well
}

// ErrShutdown is what a node says of itself whose machine is about to stop.
var ErrShutdown = fmt.Errorf("node is shutting down")

// errs are what is wrong, in the kubelet's order (ns-10).
func (h Health) errs() []error {
	errs := []error{h.Runtime}
	for _, c := range h.Checks {
		if c.Err != nil {
			errs = append(errs, fmt.Errorf("%s is not healthy: %w", c.Name, c.Err))
		}
	}
	if h.Network != nil {
		errs = append(errs, fmt.Errorf("container runtime network not ready: %w", h.Network))
	}
	errs = append(errs, h.Storage, h.Shutdown)
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// unknownTime is how long the last word on a node's readiness counts.
const unknownTime = 30 * time.Second

// required is what a node can't be without.
var required = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage}

// setReady sets condition Ready (ns-10, ns-11).
func (f Facts) setReady(_ context.Context, d *Draft) error {
	var health Health
	if f.Health != nil {
		health = f.Health()
	}
	if is := d.find(v1.NodeReady); health.Unknown && is != nil && is.Status != v1.ConditionUnknown && d.Age < unknownTime {
		is.LastHeartbeatTime = d.Now
		return nil
	}
	errs := health.errs()
	var missing []string
	for _, r := range required {
		if _, ok := d.Node.Status.Capacity[r]; !ok {
			missing = append(missing, string(r))
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("missing node capacity for resources: %s", strings.Join(missing, ", ")))
	}
	c := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	if len(errs) > 0 {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "KubeletNotReady", utilerrors.NewAggregate(errs).Error()
	}
	if health.Warning != "" {
		c.Message = fmt.Sprintf("%s. WARNING: %s", c.Message, health.Warning)
	}
	if was := d.condition(c); was != "" && was != c.Status {
		reason := "NodeReady"
		if c.Status != v1.ConditionTrue {
			reason = "NodeNotReady"
		}
		d.Event(v1.EventTypeNormal, reason, "Node %s status is now: %s", d.Node.Name, reason)
	}
	return nil
}

// pressures are the conditions of the node's pressure: what each says when there
// is some and when there is none, and the events of the changes (ns-8, ns-9).
var pressures = []struct {
	kind       v1.NodeConditionType
	is         func(Pressure) bool
	yes, no    string // reasons
	yesMessage string
	noMessage  string
	yesE, noE  string // reasons of events
}{
	{v1.NodeMemoryPressure, func(p Pressure) bool { return p.Memory },
		"KubeletHasInsufficientMemory", "KubeletHasSufficientMemory",
		"kubelet has insufficient memory available", "kubelet has sufficient memory available",
		"NodeHasInsufficientMemory", "NodeHasSufficientMemory"},
	{v1.NodeDiskPressure, func(p Pressure) bool { return p.Disk },
		"KubeletHasDiskPressure", "KubeletHasNoDiskPressure",
		"kubelet has disk pressure", "kubelet has no disk pressure",
		"NodeHasDiskPressure", "NodeHasNoDiskPressure"},
	{v1.NodePIDPressure, func(p Pressure) bool { return p.PID },
		"KubeletHasInsufficientPID", "KubeletHasSufficientPID",
		"kubelet has insufficient PID available", "kubelet has sufficient PID available",
		"NodeHasInsufficientPID", "NodeHasSufficientPID"},
}

func (f Facts) setPressure(_ context.Context, d *Draft) error {
	now := f.Pressure()
	for _, p := range pressures {
		c, event := v1.NodeCondition{Type: p.kind, Status: v1.ConditionFalse, Reason: p.no, Message: p.noMessage}, p.noE
		if p.is(now) {
			c.Status, c.Reason, c.Message, event = v1.ConditionTrue, p.yes, p.yesMessage, p.yesE
		}
		if was := d.find(p.kind); was != nil && was.Status == c.Status {
			c.Reason, c.Message = was.Reason, was.Message // ns-9
		}
		if d.condition(c) != c.Status {
			d.Event(v1.EventTypeNormal, event, "Node %s status is now: %s", d.Node.Name, event)
		}
	}
	return nil
}

// condition puts c in its place, with a heartbeat, and a transition if its status
// is new. It returns the status from before, "" if there was none.
func (d *Draft) condition(c v1.NodeCondition) (was v1.ConditionStatus) {
	c.LastHeartbeatTime, c.LastTransitionTime = d.Now, d.Now
	old := d.find(c.Type)
	if old == nil {
		d.Node.Status.Conditions = append(d.Node.Status.Conditions, c)
		return ""
	}
	was = old.Status
	if was == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	*old = c
	return was
}

func (d *Draft) find(kind v1.NodeConditionType) *v1.NodeCondition {
	return findCondition(&d.Node.Status, kind)
}

func findCondition(s *v1.NodeStatus, kind v1.NodeConditionType) *v1.NodeCondition {
	i := slices.IndexFunc(s.Conditions, func(c v1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}
