//go:build unix

package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/test/internal/criproxy"
)

// A document is a normalized snapshot: values of JSON by their subjects, such as
// "CreateContainer web/main" or "status web".
type document map[string]any

// maxAttempt is the number of the last restart that is compared: how often a container
// restarts until its pod is deleted depends on the other pods.
const maxAttempt = 1

func newDocument(s *snapshot) document {
	d, n := document{}, newNormalizer(s)
	d.addCalls(s, n)
	for name, pod := range s.Pods {
		d.addPod(name, pod, n)
	}
	for batch, files := range s.Cgroups {
		d["cgroups of the node with "+batch] = n.strings(files)
	}
	d.addEvents(s, n)
	d.addNode(s.Node, n)
	return d
}

// repeated are the methods whose number of calls per pod depends on time.
var repeated = map[string]bool{"ExecSync": true}

// changes are the methods that change something, or run something in a container.
var changes = map[string]bool{
	"RunPodSandbox": true, "StopPodSandbox": true, "RemovePodSandbox": true, "UpdatePodSandboxResources": true,
	"CreateContainer": true, "StartContainer": true, "StopContainer": true, "RemoveContainer": true, "UpdateContainerResources": true,
	"ExecSync": true, "PullImage": true, "RemoveImage": true, "ReopenContainerLog": true, "CheckpointContainer": true, "UpdateRuntimeConfig": true,
}

// addCalls adds each request that changes a pod, with the runtime's error, the order of a
// pod's requests, and the distinct other requests. Repeated equal requests count once.
func (d document) addCalls(s *snapshot, n *normalizer) {
	orders := map[string][]string{}
	lists := map[string][]any{}
	add := func(subject string, value any) bool {
		if slices.ContainsFunc(lists[subject], func(v any) bool { return canonical(v) == canonical(value) }) {
			return false
		}
		lists[subject] = append(lists[subject], value)
		return true
	}
	for _, c := range s.Calls {
		request, _ := n.value(c.Request).(map[string]any)
		value := map[string]any{"request": request}
		if c.Code != "" && c.Code != "Canceled" {
			value["error"] = c.Code + ": " + n.string(c.Error)
		}
		object, attempt := n.object(c)
		switch {
		case attempt > maxAttempt:
		case !changes[c.Method]:
			value["request"] = generic(value["request"])
			delete(value, "error") // of an object that was just removed
			add("requests "+c.Method, value)
		case object == "":
			add(strings.TrimSpace(c.Method+" "+text(c.Request, "image", "image")), value)
		default:
			pod, container, _ := strings.Cut(object, "/")
			pod, number, sandboxAttempt := strings.Cut(pod, "#")
			if sandboxAttempt && container == "" {
				container = "#" + number
			}
			if add(c.Method+" "+object, value) && !repeated[c.Method] {
				orders[pod] = append(orders[pod], strings.TrimSpace(c.Method+" "+container))
			}
		}
	}
	for subject, list := range lists {
		if len(list) == 1 {
			d[subject] = list[0]
			continue
		}
		slices.SortFunc(list, func(a, b any) int { return cmp.Compare(canonical(a), canonical(b)) })
		d[subject] = list
	}
	for pod, order := range orders {
		d["order "+pod] = sortConcurrent(order)
	}
}

// object returns the pod or container of a call, as "web" or "web/main#1", and the number of
// its attempt; "" if it has none.
func (n *normalizer) object(c criproxy.Call) (object string, attempt uint64) {
	switch {
	case c.Method == "RunPodSandbox":
		attempt = number(c.Request, "config", "metadata", "attempt")
		object = numbered(text(c.Request, "config", "metadata", "name"), attempt)
	case c.Method == "CreateContainer":
		attempt = number(c.Request, "config", "metadata", "attempt")
		pod, _, _ := strings.Cut(n.sandboxes[text(c.Request, "pod_sandbox_id")], "#")
		return numbered(pod+"/"+text(c.Request, "config", "metadata", "name"), attempt), attempt
	case text(c.Request, "container_id") != "":
		object = n.containers[text(c.Request, "container_id")]
	case text(c.Request, "pod_sandbox_id") != "":
		object = n.sandboxes[text(c.Request, "pod_sandbox_id")]
	}
	if name, suffix, ok := strings.Cut(object, "#"); ok {
		fmt.Sscan(suffix, &attempt)
		object = name + "#" + suffix
	}
	pod, rest, ok := strings.Cut(object, "/")
	if name, suffix, _ := strings.Cut(pod, "#"); true {
		pod = strings.TrimSuffix(name, "-"+NodeName)
		if suffix != "" {
			pod += "#" + suffix
		}
	}
	if ok {
		return pod + "/" + rest, attempt
	}
	return pod, attempt
}

// sortConcurrent sorts neighboring requests that stop or remove containers, which may be
// concurrent.
func sortConcurrent(order []string) (out []any) {
	for i := 0; i < len(order); {
		method, _, _ := strings.Cut(order[i], " ")
		end := i + 1
		for end < len(order) && (method == "StopContainer" || method == "RemoveContainer") && strings.HasPrefix(order[end], method+" ") {
			end++
		}
		slices.Sort(order[i:end])
		for ; i < end; i++ {
			out = append(out, order[i])
		}
	}
	return out
}

// addPod adds the statuses and files of a pod.
func (d document) addPod(name string, pod *podRecord, n *normalizer) {
	if pod.Settled > 0 && pod.Settled <= len(pod.History) {
		settled := pod.History[:pod.Settled]
		last := settled[len(settled)-1]
		d["status "+name] = n.json(last.Status)
		d["transitions "+name] = transitions(settled, n)
		if pod.Static {
			d["mirror "+name] = map[string]any{"metadata": n.json(mirrorMetadata(&last)), "spec": n.json(last.Spec)}
		}
		if ended := pod.History[len(pod.History)-1]; !pod.Static && ended.DeletionTimestamp != nil {
			d["deleted "+name] = n.json(ended.Status)
		}
	} else {
		d["status "+name] = "no pod in the API server"
	}
	for subject, files := range map[string]map[string]string{"cgroups": pod.Cgroups, "files": pod.Files, "logs": pod.Logs} {
		if len(files) > 0 {
			d[subject+" "+name] = n.strings(files)
		}
	}
	for container, found := range pod.Containers {
		d["network files "+name+"/"+container] = n.strings(found.Files)
	}
}

// mirrorMetadata returns the part of a mirror pod's metadata that the node determines.
func mirrorMetadata(pod *v1.Pod) map[string]any {
	return map[string]any{"labels": pod.Labels, "annotations": pod.Annotations, "ownerReferences": pod.OwnerReferences, "finalizers": pod.Finalizers}
}

// transitions returns the phases of a pod, and the statuses and reasons of each condition,
// without repetitions.
func transitions(history []v1.Pod, n *normalizer) map[string]any {
	out := map[string]any{}
	add := func(key, value string) {
		list, _ := out[key].([]any)
		if len(list) == 0 || list[len(list)-1] != value {
			out[key] = append(list, value)
		}
	}
	for i := range history {
		status := &history[i].Status
		add("phase", string(status.Phase))
		for _, c := range status.Conditions {
			add(string(c.Type), strings.TrimSpace(string(c.Status)+" "+n.string(c.Reason)))
		}
	}
	return out
}

// addEvents adds the distinct events of each object, without their counts and times.
func (d document) addEvents(s *snapshot, n *normalizer) {
	for i := range s.Events {
		e := &s.Events[i]
		if e.InvolvedObject.Kind == "Service" { // of a controller in the API server
			continue
		}
		subject := "events of " + strings.ToLower(e.InvolvedObject.Kind)
		if e.InvolvedObject.Kind == "Pod" {
			subject = "events " + strings.TrimSuffix(e.InvolvedObject.Name, "-"+NodeName)
		}
		group, _ := d[subject].(map[string]any)
		if group == nil {
			group = map[string]any{}
			d[subject] = group
		}
		key := strings.TrimSpace(fmt.Sprintf("%s %s", e.Reason, e.InvolvedObject.FieldPath))
		entry := map[string]any{
			"type": e.Type, "message": n.string(e.Message), "component": e.Source.Component, "reporter": e.ReportingController,
			"annotations": n.json(e.Annotations), "involvedObject": n.json(e.InvolvedObject),
		}
		delete(entry["involvedObject"].(map[string]any), "resourceVersion")
		list, _ := group[key].([]any)
		if slices.ContainsFunc(list, func(v any) bool { return canonical(v) == canonical(entry) }) {
			continue
		}
		list = append(list, entry)
		slices.SortFunc(list, func(a, b any) int { return cmp.Compare(canonical(a), canonical(b)) })
		group[key] = list
	}
}

// addNode adds the node's object, without what depends on the run.
func (d document) addNode(node *v1.Node, n *normalizer) {
	if node == nil {
		return
	}
	node = node.DeepCopy()
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = 0
	for i := range node.Status.Images {
		slices.Sort(node.Status.Images[i].Names)
	}
	slices.SortFunc(node.Status.Images, func(a, b v1.ContainerImage) int { return slices.Compare(a.Names, b.Names) })
	d["node"] = map[string]any{"labels": n.json(node.Labels), "annotations": n.json(node.Annotations), "spec": n.json(node.Spec), "status": n.json(node.Status)}
}

// json returns a normalized copy of a value as JSON has it.
func (n *normalizer) json(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return err.Error()
	}
	return n.value(out)
}

// canonical returns JSON with sorted keys, for comparisons.
func canonical(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // of strings, maps and lists, which does not fail
	return strings.TrimSpace(b.String())
}
