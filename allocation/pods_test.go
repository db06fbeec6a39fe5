package allocation_test

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// res reads resources from "cpu=1/2 memory=64Mi/128Mi": request and limit, "-"
// for none.
func res(text string) v1.ResourceRequirements {
	var r v1.ResourceRequirements
	for word := range strings.FieldsSeq(text) {
		name, figures, _ := strings.Cut(word, "=")
		request, limit, _ := strings.Cut(figures, "/")
		for _, x := range []struct {
			list *v1.ResourceList
			text string
		}{{&r.Requests, request}, {&r.Limits, limit}} {
			if x.text == "" || x.text == "-" {
				continue
			}
			if *x.list == nil {
				*x.list = v1.ResourceList{}
			}
			(*x.list)[v1.ResourceName(name)] = resource.MustParse(x.text)
		}
	}
	return r
}

// podOf makes a pod from lines like "web: cpu=1/2", "sidecar log: cpu=1",
// "init setup: cpu=1" and "pod: cpu=3/4".
func podOf(uid types.UID, lines ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid), Namespace: "ns", Generation: 1}}
	for _, line := range lines {
		name, figures, _ := strings.Cut(line, ":")
		kind, rest, two := strings.Cut(name, " ")
		c := v1.Container{Name: name, Resources: res(figures)}
		switch {
		case name == "pod":
			p.Spec.Resources = &c.Resources
		case two:
			c.Name = rest
			if kind == "sidecar" {
				c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

// runs returns a status with running containers and their resources: "web: cpu=1/2".
// Those of a container without values are unknown.
func runs(lines ...string) *runtime.PodStatus {
	s := &runtime.PodStatus{}
	for _, line := range lines {
		name, figures, known := strings.Cut(line, ":")
		c := runtime.ContainerStatus{Name: name, ID: "x://" + name, State: runtime.ContainerRunning}
		if known {
			c.Resources = new(res(figures))
		}
		s.Containers = append(s.Containers, c)
	}
	return s
}
