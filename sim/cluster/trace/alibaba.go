package trace

import (
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/sim/cluster"
)

var alibabaPodColumns = []string{
	"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
	"creation_time", "deletion_time", "scheduled_time",
}

// ReadAlibabaPods reads the pods of a file openb_pod_list_*.csv of cluster-trace-gpu-v2023.
//
//	name            Pod.Name
//	cpu_milli       Pod.Requests.CPU
//	memory_mib      Pod.Requests.Memory, which is also the usage: the trace has none
//	creation_time   Pod.Arrival, relative to the earliest in the file, in seconds
//	scheduled_time  with deletion_time Pod.RunTime, at least a second; if it is empty,
//	                the pod was not scheduled, and creation_time is used
//	deletion_time   see scheduled_time
//	pod_phase       Pod.ExitCode: 1 if it is Failed, else 0
//	qos             Pod.Labels["qos"], as is
//	num_gpu, gpu_milli, gpu_spec
//	                Pod.Labels: GPUs are not simulated; Policies.Filter may use them
//
// Pods are not restarted. An unnamed first column, the index that pandas writes, is ignored.
func ReadAlibabaPods(r io.Reader) (pods []cluster.Pod, err error) {
	earliest := time.Duration(1<<63 - 1)
	required := []string{"name", "cpu_milli", "memory_mib", "creation_time", "deletion_time", "scheduled_time"}
	err = read(r, append([]string{""}, alibabaPodColumns...), required, func(r *row) error {
		created, deleted, scheduled := r.seconds("creation_time"), r.seconds("deletion_time"), r.seconds("scheduled_time")
		if scheduled == 0 {
			scheduled = created
		}
		switch {
		case r.err != nil:
			return r.err
		case scheduled < created:
			r.fail("scheduled_time", "is before creation_time")
		case deleted < scheduled:
			r.fail("deletion_time", "is before scheduled_time or creation_time")
		}
		earliest = min(earliest, created)
		p := cluster.Pod{
			Name: r.fields["name"], Arrival: created, RunTime: max(deleted-scheduled, time.Second),
			Requests:      cluster.Resources{CPU: r.integer("cpu_milli", 0, maxMilli), Memory: r.mib("memory_mib")},
			RestartPolicy: v1.RestartPolicyNever, Labels: r.labels("qos", "num_gpu", "gpu_milli", "gpu_spec"),
		}
		switch phase := r.fields["pod_phase"]; phase {
		case "Failed":
			p.ExitCode = 1
		case "", "Succeeded", "Running", "Pending":
		default:
			r.fail("pod_phase", "unknown phase %.40q", phase)
		}
		pods = append(pods, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range pods {
		pods[i].Arrival -= earliest
	}
	return pods, nil
}

// ReadAlibabaNodes reads the nodes of a file openb_node_list_*.csv of cluster-trace-gpu-v2023.
//
//	sn          Node.Name
//	cpu_milli   Node.Capacity.CPU
//	memory_mib  Node.Capacity.Memory
//	gpu, model  Node.Labels: GPUs are not simulated
//
// Disks are not limited. An unnamed first column is ignored.
func ReadAlibabaNodes(r io.Reader) (nodes []cluster.Node, err error) {
	columns := []string{"", "sn", "cpu_milli", "memory_mib", "gpu", "model"}
	err = read(r, columns, columns[1:4], func(r *row) error {
		n := cluster.Node{
			Name:     r.fields["sn"],
			Capacity: cluster.Resources{CPU: r.integer("cpu_milli", 1, maxMilli), Memory: r.mib("memory_mib")},
			Labels:   r.labels("gpu", "model"),
		}
		if r.err == nil && (n.Capacity.CPU == 0 || n.Capacity.Memory == 0) {
			return fmt.Errorf("trace: line %d: column memory_mib or cpu_milli is empty or zero", r.line)
		}
		nodes = append(nodes, n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return nodes, nil
}

// labels returns the columns that are not empty and not "nan", as pandas writes missing values.
func (r *row) labels(columns ...string) map[string]string {
	labels := map[string]string{}
	for _, c := range columns {
		if v := r.fields[c]; v != "" && v != "nan" {
			labels[c] = v
		}
	}
	return labels
}
