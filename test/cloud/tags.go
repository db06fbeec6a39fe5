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

// Tags of machines. tagPast begins the tags of what is gone, see past.
const (
	tagNode      = "kubeparts.node" // whose machine it is
	tagUID       = "kubeparts.uid"
	tagName      = "kubeparts.name"
	tagNamespace = "kubeparts.namespace"
	tagSource    = "kubeparts.source"
	tagAttempt   = "kubeparts.attempt"
	tagHostNet   = "kubeparts.hostnetwork"
	tagGrace     = "kubeparts.grace" // seconds, for the end of a pod that nobody knows any more
	tagPast      = "kubeparts.past."
)

// Tags of processes.
const (
	tagContainer = "kubeparts.container"
	tagRestarts  = "kubeparts.restarts"
	tagHash      = "kubeparts.hash" // of the spec that it was made from
	tagTurn      = "kubeparts.turn" // in which it is stopped
)

// machineTags says whose machine it is.
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

// processTags says which instance of which container it is.
func processTags(pod *v1.Pod, st *plan.Start) map[string]string {
	turn := 0 // regular ones first, then init containers and sidecars, the last one first (rt-116)
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

// number reads a tag that was written here; one that somebody spoilt is 0.
func number(tags map[string]string, tag string) uint64 {
	n, _ := strconv.ParseUint(tags[tag], 10, 64)
	return n
}

// seconds of a grace period: 2 if nothing says how long it is (rt-108), and never too
// long for a time.Duration.
func seconds(grace ...*int64) int64 {
	said := cmp.Or(append(grace, new(int64(2)))...)
	return min(max(*said, 0), math.MaxInt32)
}

// graceOf returns the grace period of a kill (rt-108).
func graceOf(req runtime.KillRequest, machines []Machine) time.Duration {
	said := []*int64{req.GracePeriodSeconds}
	if req.Pod != nil {
		said = append(said, req.Pod.DeletionGracePeriodSeconds, req.Pod.Spec.TerminationGracePeriodSeconds)
	}
	if len(machines) > 0 {
		said = append(said, new(int64(number(machines[0].Tags, tagGrace))))
	}
	return time.Duration(seconds(said...)) * time.Second
}
