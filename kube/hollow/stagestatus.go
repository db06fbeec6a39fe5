package hollow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// stageFuncs are the functions of kwok's templates. Those of addresses return one that is not
// used: a status has the addresses of its node.
var stageFuncs = template.FuncMap{
	"Quote": func(v any) string {
		text, err := json.Marshal(v)
		if err != nil || text[0] != '"' {
			return strconv.Quote(fmt.Sprint(v))
		}
		return string(text)
	},
	"Now":       func() string { return time.Now().Format(time.RFC3339Nano) },
	"StartTime": func() string { return time.Now().Format(time.RFC3339Nano) },
	"Version":   func() string { return "" },
	"YAML": func(v any, indent ...int) (string, error) {
		text, err := yaml.Marshal(v)
		out := string(text)
		if len(indent) == 1 && indent[0] > 0 {
			out = strings.ReplaceAll("\n"+out, "\n", "\n"+strings.Repeat(" ", 2*indent[0]))
		}
		return out, err
	},
	"dict": func(pairs ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			out[fmt.Sprint(pairs[i])] = pairs[i+1]
		}
		return out
	},
	"NodeConditions": func() []any { return nil },
	"NodeIP":         address, "NodeName": address, "NodeIPWith": address, "PodIP": address, "PodIPWith": address,
	"NodeIPsWith": addresses, "PodIPsWith": addresses,
	"NodePort": func() int { return 0 },
}

func address(...any) string     { return "0.0.0.0" }
func addresses(...any) []string { return []string{"0.0.0.0"} }

// parseTemplate parses a statusTemplate, and executes it for a pod as an example.
func parseTemplate(text string) (*template.Template, error) {
	t, err := template.New("statusTemplate").Funcs(stageFuncs).Parse(text)
	if err != nil {
		return nil, err
	}
	_, err = execute(t, &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "example"}}}})
	return t, err
}

// execute returns the status of a pod that a template specifies. Templates read annotations and
// the current status: of a pod that runs.
func execute(t *template.Template, pod *v1.Pod) (*v1.PodStatus, error) {
	now := metav1.Now()
	current := *pod
	current.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &now, PodIP: address()}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		current.Status.InitContainerStatuses = append(current.Status.InitContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}},
		})
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		current.Status.ContainerStatuses = append(current.Status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
		})
	}
	if current.Annotations == nil {
		current.Annotations = map[string]string{"": ""} // an empty map is left out
	}
	data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&current)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, err
	}
	status := new(v1.PodStatus)
	return status, yaml.Unmarshal(out.Bytes(), status)
}
