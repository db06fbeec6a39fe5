package apitest

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

// columns are the columns of tables between Name and Age, by kind: a header and the path of
// a field, or the sum of two fields with a slash. Kubernetes' tables have more.
var columns = map[string][][2]string{
	"Deployment":            {{"Ready", "status.readyReplicas/spec.replicas"}, {"Up-to-date", "status.updatedReplicas/"}, {"Available", "status.availableReplicas/"}},
	"ReplicaSet":            {{"Desired", "spec.replicas/"}, {"Current", "status.replicas/"}, {"Ready", "status.readyReplicas/"}},
	"ReplicationController": {{"Desired", "spec.replicas/"}, {"Current", "status.replicas/"}, {"Ready", "status.readyReplicas/"}},
	"StatefulSet":           {{"Ready", "status.readyReplicas/spec.replicas"}},
	"DaemonSet":             {{"Desired", "status.desiredNumberScheduled/"}, {"Current", "status.currentNumberScheduled/"}, {"Ready", "status.numberReady/"}},
	"Job":                   {{"Completions", "status.succeeded/spec.completions"}},
	"Namespace":             {{"Status", "status.phase"}},
	"PersistentVolume":      {{"Status", "status.phase"}},
	"PersistentVolumeClaim": {{"Status", "status.phase"}, {"Volume", "spec.volumeName"}},
	"Service":               {{"Type", "spec.type"}, {"Cluster-IP", "spec.clusterIP"}},
	"Lease":                 {{"Holder", "spec.holderIdentity"}},
	"Secret":                {{"Type", "type"}},
	"Event":                 {{"Type", "type"}, {"Reason", "reason"}, {"Message", "message"}},
}

// table returns the table of objects that kubectl prints.
func table(objects []object, single object, gvk schema.GroupVersionKind) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, Rows: []metav1.TableRow{}}
	if single != nil {
		t.ResourceVersion = single.GetResourceVersion()
	}
	column := func(name, format string) {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string", Format: format})
	}
	column("Name", "name")
	extra := columns[gvk.Kind]
	switch gvk.Kind {
	case "Pod":
		extra = [][2]string{{"Ready"}, {"Status"}, {"Restarts"}}
	case "Node":
		extra = [][2]string{{"Status"}, {"Version", "status.nodeInfo.kubeletVersion"}}
	}
	for _, c := range extra {
		column(c[0], "")
	}
	column("Age", "")
	for _, o := range objects {
		row := metav1.TableRow{Cells: []any{o.GetName()}, Object: runtime.RawExtension{Object: partial(o)}}
		switch o := o.(type) {
		case *v1.Pod:
			row.Cells = append(row.Cells, podCells(o)...)
		case *v1.Node:
			row.Cells = append(row.Cells, nodeStatus(o), o.Status.NodeInfo.KubeletVersion)
		default:
			fields, _ := tree(o)
			for _, c := range extra {
				row.Cells = append(row.Cells, cell(fields, c[1]))
			}
		}
		age := "<unknown>"
		if created := o.GetCreationTimestamp(); !created.IsZero() {
			age = duration.HumanDuration(time.Since(created.Time))
		}
		row.Cells = append(row.Cells, age)
		t.Rows = append(t.Rows, row)
	}
	return t
}

// cell returns a field, or two with a slash; a missing number is 0.
func cell(fields map[string]any, path string) string {
	first, second, number := strings.Cut(path, "/")
	text := func(path string) string {
		value := valueAt(fields, strings.Split(path, "."))
		switch {
		case value != nil:
			return fmt.Sprint(value)
		case number:
			return "0"
		}
		return "<none>"
	}
	if second == "" {
		return text(first)
	}
	return text(first) + "/" + text(second)
}

func podCells(pod *v1.Pod) []any {
	ready, restarts := 0, int32(0)
	reason := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		reason = pod.Status.Reason
	}
	for _, c := range pod.Status.ContainerStatuses {
		restarts += c.RestartCount
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			reason = c.State.Waiting.Reason
		case c.State.Terminated != nil && c.State.Terminated.Reason != "":
			reason = c.State.Terminated.Reason
		}
		if c.Ready {
			ready++
		}
	}
	if pod.DeletionTimestamp != nil {
		reason = "Terminating"
	}
	return []any{fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers)), reason, fmt.Sprint(restarts)}
}

func nodeStatus(node *v1.Node) string {
	status := "Unknown"
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			status = map[v1.ConditionStatus]string{v1.ConditionTrue: "Ready"}[c.Status]
			if status == "" {
				status = "NotReady"
			}
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}
