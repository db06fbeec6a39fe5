package jobs

import (
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// The labels of jobs.
const (
	labelUID         = "uid"
	labelName        = "name"
	labelNamespace   = "namespace"
	labelSource      = "source"
	labelHostNetwork = "host-network"
	labelAttempt     = "attempt" // of the sandbox
	labelContainer   = "container"
	labelImage       = "image"
	labelRestarts    = "restarts"
	labelHash        = "hash"
	labelGrace       = "grace" // in seconds
)

// jobOf returns the job of a start.
func jobOf(pod *v1.Pod, attempt uint32, st *plan.Start, source string) Job {
	labels := map[string]string{
		labelUID: string(pod.UID), labelName: pod.Name, labelNamespace: pod.Namespace, labelSource: source,
		labelHostNetwork: strconv.FormatBool(pod.Spec.HostNetwork), labelAttempt: strconv.FormatUint(uint64(attempt), 10),
		labelContainer: st.Name, labelImage: st.Container.Image, labelRestarts: strconv.FormatInt(int64(st.RestartCount), 10),
		labelHash: strconv.FormatUint(plan.Hash(st.Container), 10),
	}
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		labels[labelGrace] = strconv.FormatInt(*grace, 10)
	}
	return Job{ID: string(pod.UID) + "-" + st.Name + "-" + labels[labelRestarts], Labels: labels, Container: st.Container}
}

// number returns a numeric label, 0 if it is missing.
func number(labels map[string]string, name string) uint64 {
	n, _ := strconv.ParseUint(labels[name], 10, 64)
	return n
}
