package statuspage

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/conceal"
)

// redacted replaces values that may be secret.
const redacted = "<redacted>"

// redactPod returns a copy of a pod for clients that are not authenticated: without the
// values of its environment, of HTTP headers, of annotations other than the kubelet's own,
// and of options for volume drivers. Annotations are redacted because some contain copies
// of the spec: kubectl's last-applied-configuration. Names are kept.
func redactPod(pod *v1.Pod) *v1.Pod {
	hide := hiderOf(pod)
	pod = pod.DeepCopy()
	pod.ManagedFields = nil
	for name, value := range pod.Annotations {
		if value != "" && !strings.HasPrefix(name, "kubernetes.io/config.") {
			pod.Annotations[name] = redacted
		}
	}
	for value := range secretValues(pod) {
		*value = redacted
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.CSI != nil:
			redactMap(v.CSI.VolumeAttributes)
		case v.FlexVolume != nil:
			redactMap(v.FlexVolume.Options)
		}
	}
	pod.Status = mapText(pod.Status, hide)
	return pod
}

func redactMap(m map[string]string) {
	for name, value := range m {
		if value != "" {
			m[name] = redacted
		}
	}
}

// secretValues yields the non-empty values of a pod's containers that may be secret: of
// environment variables, and of HTTP headers of probes and hooks.
func secretValues(pod *v1.Pod) func(yield func(*string) bool) {
	return func(yield func(*string) bool) {
		for c := range containersIn(&pod.Spec) {
			for i := range c.Env {
				if v := &c.Env[i].Value; *v != "" && !yield(v) {
					return
				}
			}
			for _, get := range httpGets(c) {
				for i := range get.HTTPHeaders {
					if v := &get.HTTPHeaders[i].Value; *v != "" && !yield(v) {
						return
					}
				}
			}
		}
	}
}

// containersIn yields all containers of a pod.
func containersIn(spec *v1.PodSpec) func(yield func(*v1.Container) bool) {
	return func(yield func(*v1.Container) bool) {
		for i := range spec.InitContainers {
			if !yield(&spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i]) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield((*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

func httpGets(c *v1.Container) (all []*v1.HTTPGetAction) {
	for _, p := range []*v1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if p != nil && p.HTTPGet != nil {
			all = append(all, p.HTTPGet)
		}
	}
	if c.Lifecycle == nil {
		return all
	}
	for _, h := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if h != nil && h.HTTPGet != nil {
			all = append(all, h.HTTPGet)
		}
	}
	return all
}

// shortestHidden is the length in bytes of the shortest value that is removed from texts. A
// shorter value, such as "true" or a port, occurs in many texts by chance.
const shortestHidden = 8

// hiderOf returns a function that removes the secret values of a pod, and each of their
// lines, from texts such as errors, quoted any number of times. Names of the pod's parts are kept.
func hiderOf(pod *v1.Pod) func(string) string {
	names := map[string]bool{pod.Name: true, pod.Namespace: true, string(pod.UID): true, pod.Spec.NodeName: true, pod.Spec.ServiceAccountName: true}
	for c := range containersIn(&pod.Spec) {
		names[c.Name], names[c.Image] = true, true
	}
	for i := range pod.Spec.Volumes {
		names[pod.Spec.Volumes[i].Name] = true
	}
	values := map[string]bool{}
	add := func(text string) {
		if len(text) >= shortestHidden && !names[text] {
			values[text] = true
		}
	}
	for v := range secretValues(pod) {
		add(*v)
		for line := range strings.Lines(*v) {
			add(strings.TrimSpace(line))
		}
	}
	if len(values) == 0 {
		return func(text string) string { return text }
	}
	hidden := make([]conceal.Value, 0, len(values))
	for _, v := range slices.Sorted(maps.Keys(values)) {
		hidden = append(hidden, conceal.Value{Old: v, New: redacted})
	}
	return func(text string) string { return conceal.Text(text, hidden) }
}

// mapText returns a copy of v with f applied to each string in it, also in slices and
// behind pointers. Maps, other string types, and structs with unexported fields are
// returned as they are. v is not changed.
func mapText[T any](v T, f func(string) string) T {
	return mapValue(reflect.ValueOf(v), f).Interface().(T)
}

func mapValue(v reflect.Value, f func(string) string) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			return reflect.ValueOf(f(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out := reflect.New(v.Type().Elem())
			out.Elem().Set(mapValue(v.Elem(), f))
			return out
		}
	case reflect.Slice:
		if !v.IsNil() {
			out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			for i := range v.Len() {
				out.Index(i).Set(mapValue(v.Index(i), f))
			}
			return out
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				return v
			}
		}
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(mapValue(v.Field(i), f))
		}
		return out
	}
	return v
}
