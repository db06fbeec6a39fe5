package cloud

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// Tags of machines. tagHistory is a prefix; see history.
const (
	tagNode      = "kubeparts.node"
	tagUID       = "kubeparts.uid"
	tagName      = "kubeparts.name"
	tagNamespace = "kubeparts.namespace"
	tagSource    = "kubeparts.source"
	tagAttempt   = "kubeparts.attempt"
	tagHostNet   = "kubeparts.hostnetwork"
	tagGrace     = "kubeparts.grace" // seconds, for the termination of an orphaned pod
	tagHistory   = "kubeparts.history."
)

// Tags of processes.
const (
	tagContainer = "kubeparts.container"
	tagRestarts  = "kubeparts.restarts"
	tagHash      = "kubeparts.hash" // of the container spec
	tagTurn      = "kubeparts.turn" // in which it is stopped, ascending
)

// machineTags returns the tags of a machine of a pod.
func (r *Runtime) machineTags(pod *v1.Pod, attempt uint32) map[string]string {
	return map[string]string{
		tagNode:      r.node,
		tagUID:       string(pod.UID),
		tagName:      pod.Name,
		tagNamespace: pod.Namespace,
		tagSource:    pod.Annotations["kubernetes.io/config.source"],
		tagAttempt:   strconv.FormatUint(uint64(attempt), 10),
		tagHostNet:   strconv.FormatBool(pod.Spec.HostNetwork),
		tagGrace:     strconv.FormatInt(seconds(pod.Spec.TerminationGracePeriodSeconds), 10),
	}
}

// processTags returns the tags of an instance of a container.
func processTags(pod *v1.Pod, st *plan.Start) map[string]string {
	turn := 0 // regular containers first, then init containers and sidecars in reverse order (rt-116)
	if st.Kind == plan.Init {
		turn = len(pod.Spec.InitContainers) - slices.IndexFunc(pod.Spec.InitContainers, func(c v1.Container) bool { return c.Name == st.Name })
	}
	return map[string]string{
		tagContainer: st.Name,
		tagRestarts:  strconv.Itoa(int(st.RestartCount)),
		tagHash:      strconv.FormatUint(plan.Hash(st.Container), 10),
		tagTurn:      strconv.Itoa(turn),
	}
}

// number returns the value of a numeric tag, zero if it is invalid.
func number(tags map[string]string, tag string) uint64 {
	n, _ := strconv.ParseUint(tags[tag], 10, 64)
	return n
}

// seconds returns the first grace period that is set, or 2 (rt-108), limited to what a
// time.Duration can hold.
func seconds(grace ...*int64) int64 {
	period := cmp.Or(append(grace, new(int64(2)))...)
	return min(max(*period, 0), math.MaxInt32)
}

// graceOf returns the grace period of a kill (rt-108).
func graceOf(req runtime.KillRequest, machines []Machine) time.Duration {
	periods := []*int64{req.GracePeriodSeconds}
	if req.Pod != nil {
		periods = append(periods, req.Pod.DeletionGracePeriodSeconds, req.Pod.Spec.TerminationGracePeriodSeconds)
	}
	if len(machines) > 0 {
		periods = append(periods, new(int64(number(machines[0].Tags, tagGrace))))
	}
	return time.Duration(seconds(periods...)) * time.Second
}
