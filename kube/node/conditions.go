package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Pressure reports resources of which the node is short.
type Pressure struct{ Memory, Disk, PID bool }

// A Health has the reasons why a node is not ready. The zero value is healthy.
type Health struct {
	// Unknown is set until the state has been determined for the first time. The node then
	// remains as ready as it was, for at most 30 s after the start, so that a restart does
	// not make it unready.
	Unknown bool

	// Runtime is the error of the container runtime.
	Runtime error

	// Checks are further checks that must succeed, such as the kubelet's "PLEG".
	Checks []Check

	// Network is the error of the pod network.
	Network error

	// Storage is the error of CSI drivers that are not available yet.
	Storage error

	// Shutdown is set while the machine shuts down: the kubelet's is
	// shutdown.ErrShuttingDown.
	Shutdown error

	// Warning is added to the message of a ready node: a degradation that does not make it
	// unready (rule ns-11).
	Warning string
}

// A Check is the outcome of a named check.
type Check struct {
	Name string
	Err  error // nil if healthy
}

// errs returns all errors in the kubelet's order (rule ns-10).
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

// unknownTime is the time after the start for which Health.Unknown preserves the condition.
const unknownTime = 30 * time.Second

// required are the resources without whose capacity a node is not ready.
var required = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage}

// setReady sets the condition Ready (rules ns-10, ns-11).
func (d *Draft) setReady(health Health, noEphemeralStorage bool) {
	if is := d.find(v1.NodeReady); health.Unknown && is != nil && is.Status != v1.ConditionUnknown && d.Age < unknownTime {
		is.LastHeartbeatTime = d.Now
		return
	}
	errs := health.errs()
	var missing []string
	for _, r := range required {
		if _, ok := d.Node.Status.Capacity[r]; !ok && !(r == v1.ResourceEphemeralStorage && noEphemeralStorage) {
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
}

// pressures are the pressure conditions with their reasons and messages, and the reasons of
// events about changes (rules ns-8, ns-9).
var pressures = []struct {
	kind       v1.NodeConditionType
	is         func(Pressure) bool
	yes, no    string // reasons with and without pressure
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

func (d *Draft) setPressure(now Pressure) {
	for _, p := range pressures {
		c, event := v1.NodeCondition{Type: p.kind, Status: v1.ConditionFalse, Reason: p.no, Message: p.noMessage}, p.noE
		if p.is(now) {
			c.Status, c.Reason, c.Message, event = v1.ConditionTrue, p.yes, p.yesMessage, p.yesE
		}
		if was := d.find(p.kind); was != nil && was.Status == c.Status {
			c.Reason, c.Message = was.Reason, was.Message // rule ns-9
		}
		if d.condition(c) != c.Status {
			d.Event(v1.EventTypeNormal, event, "Node %s status is now: %s", d.Node.Name, event)
		}
	}
}

// condition sets a condition with a heartbeat, and with a transition time if its status has
// changed. It returns the previous status, "" if there was none.
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
